# SPDX-License-Identifier: Apache-2.0
# Bytes by call site over time: areas stacked (EXTRA: stack), or a line each (EXTRA: lines, over the run; steps).
# CSV: number of the site, its name, x (event, part of the run, or step), time_s, bytes, and upto_bytes:
# its bytes and those of all sites below it. All rows of a site together.
load ARG0[1:strlen(ARG0)-strlen("sites.gp")]."style.gp"
eval arguments

array PEAK[512]
do for [i = 1:512] { PEAK[i] = 0 }
top_x = 0
top = 0
note(v) = (top = v > top ? v : top, top_x = column(3) > top_x ? column(3) : top_x, 0)
eval read_names
set table $notes
plot CSV using (note(column(EXTRA eq "stack" ? "upto_bytes" : "bytes"))) with table
unset table
eval measure_head
S = scale_of(top)
U = unit_of(top)
array HUE[9] = [BLUE, ORANGE, GREEN, PURPLE, "#7a5230", SKY, "#3d348b", VERMILLION, AREA]
hue(i) = EXTRA eq "stack" && i == COUNT - 1 ? AREA : HUE[int(i) % 9 + 1]

PANEL = 300
KEY_ROWS = COUNT
eval sheet(560, HEAD + PANEL + 60 + LEGEND_ROW * KEY_ROWS)
eval open_output
set multiplot
eval head
eval left_title("memory (".U.")", HEAD + PANEL / 2.0)
set label 1004 (EXTRA eq "stack" ? "trace event (number)" : EXTRA eq "steps" ? "step (number)" : "part of the run (%)") at screen 0.5, py(HEAD + PANEL + 42) center tc rgb INK
set xrange [0:top_x > 0 ? top_x : 1]
set xtics step(top_x, 5)
set lmargin at screen px(72)
set rmargin at screen px(W - 20)
set tmargin at screen py(HEAD + 8)
set bmargin at screen py(HEAD + PANEL)
set yrange [0:top > 0 ? top / S * 1.04 : 1]
set ytics step(top / S, 5)
set grid ytics lc rgb GRID lt 1 lw 1 back
unset key
of(i, v) = int(column(1)) == i ? v : NaN
if (EXTRA eq "stack") {
	plot for [i = COUNT - 1:0:-1] CSV using (of(i, column(3))):(column("upto_bytes") / S) with fillsteps fs solid 1.0 noborder lc rgb hue(i) notitle
} else {
	plot for [i = 0:COUNT - 1] CSV using (of(i, column(3))):(column("bytes") / S) with steps lw 2 dt i + 1 lc rgb hue(i) notitle
}
# the legend, on an empty plot of its own
unset label
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen py(FOOT - 14 - LEGEND_ROW * KEY_ROWS)
set bmargin at screen 0
unset border
unset tics
unset grid
unset xlabel
set xrange [0:1]
set yrange [0:1]
set key at screen px(10), py(FOOT - 8 - LEGEND_ROW * KEY_ROWS) left top Left reverse vertical maxrows KEY_ROWS samplen 2 spacing 1.05 font FONT.",13.3"
if (EXTRA eq "stack") {
	plot for [i = 0:COUNT - 1] NaN with boxes fs solid 1.0 noborder lc rgb hue(i) title cut(NAME[i + 1], 60)
} else {
	plot for [i = 0:COUNT - 1] NaN with lines lw 2 dt i + 1 lc rgb hue(i) title cut(NAME[i + 1], 60)
}
unset multiplot
