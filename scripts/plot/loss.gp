# SPDX-License-Identifier: Apache-2.0
# Reserved memory by cause over time, one panel per policy. EXTRA: s or events.
load ARG0[1:strlen(ARG0)-strlen("loss.gp")]."style.gp"
eval arguments
eval measure_head

XCOL = EXTRA eq "s" ? "time_s" : "event"
array PEAK[256]
do for [i = 1:256] { PEAK[i] = 0 }
top_x = 0
note(i, v) = (PEAK[int(i) + 1] = v > PEAK[int(i) + 1] ? v : PEAK[int(i) + 1], top_x = column(XCOL) > top_x ? column(XCOL) : top_x, 0)
eval read_names
set table $notes
plot CSV using (note(column("panel"), column("reserved_bytes"))) with table
unset table
top = 0
low = 1e30
do for [i = 1:COUNT] { top = PEAK[i] > top ? PEAK[i] : top; low = PEAK[i] < low ? PEAK[i] : low }
own = top > 3 * low
S = scale_of(top)
U = unit_of(top)

cols = COUNT == 1 ? 1 : COUNT <= 4 ? 2 : 3
rows = (COUNT + cols - 1) / cols
PANEL = COUNT == 1 ? 320 : 200
eval sheet(900, HEAD + PANEL * rows + 80)
eval open_output
if (own) { SUBTITLE = SUBTITLE."; vertical scales differ" }
set multiplot
eval head
set label 1003 "reserved memory (".U.")" at screen px(16), py(HEAD + PANEL * rows / 2.0) center rotate by 90 tc rgb INK font FONT.",13"
set label 1004 (EXTRA eq "s" ? "recorded time (s)" : "trace event (number)") at screen 0.5, py(HEAD + PANEL * rows + 10) center tc rgb INK font FONT.",13"
set tics font FONT.",12"
set xrange [0:top_x > 0 ? top_x : 1]
set style fill solid 1.0 noborder
set xtics step(top_x, cols == 3 ? 4 : 7)
set grid ytics lc rgb GRID lt 1 lw 1 back
upto(n) = (sum [k = 1:n] column(word(CAUSES, k))) / S
of(i, v) = column("panel") == i ? v : NaN
gap = 28
width = (W - 44 - 16.0) / cols
do for [i = 0:COUNT - 1] {
	r = i / cols
	c = i % cols
	set lmargin at screen px(44 + width * c + 34)
	set rmargin at screen px(44 + width * (c + 1) - 8)
	set tmargin at screen py(HEAD + PANEL * r + gap)
	set bmargin at screen py(HEAD + PANEL * (r + 1) - 32)
	high = own ? PEAK[i + 1] : top
	high = high > 0 ? high : MIB
	set yrange [0:high / S * 1.04]
	set ytics step(high / S, 4)
	set label 1 cut(NAME[i + 1], int(width / 8.2)) at graph 0, graph 1 left offset 0, character 0.65 font FONT.",12.5" tc rgb INK
	unset key
	plot for [k = 6:1:-1] CSV using (of(i, column(XCOL))):(upto(k)) with fillsteps lc rgb CAUSE_COLOR[k] notitle
	unset label 1001
	unset label 1002
	unset label 1003
	unset label 1004
}
# the legend, on an empty plot of its own
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen py(FOOT - 30)
set bmargin at screen 0
unset label 1
unset border
unset tics
unset grid
set xrange [0:1]
set yrange [0:1]
set key at screen px(20), py(FOOT - 46) left top Left reverse horizontal maxcols 6 samplen 1.4 width -1 font FONT.",12.5"
plot for [k = 1:6] NaN with boxes lc rgb CAUSE_COLOR[k] title CAUSE_NAME[k]
unset multiplot
