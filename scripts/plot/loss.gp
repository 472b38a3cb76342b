# SPDX-License-Identifier: Apache-2.0
# Reserved memory by cause over time, one panel per policy. EXTRA: s or events.
load ARG0[1:strlen(ARG0)-strlen("loss.gp")]."style.gp"
eval arguments

XCOL = EXTRA eq "s" ? "time_s" : "event"
array PEAK[512]
array FIRST[512]
array LAST[512]
do for [i = 1:512] { PEAK[i] = 0; FIRST[i] = -1 }
top_x = 0
lines_ = -1
note(i, v) = (lines_ = lines_ + 1, x_ = column(XCOL), FIRST[i + 1] = FIRST[i + 1] < 0 ? lines_ : FIRST[i + 1], LAST[i + 1] = lines_, PEAK[i + 1] = v > PEAK[i + 1] ? v : PEAK[i + 1], top_x = x_ > top_x ? x_ : top_x, sum_ = 0)
add(k) = (sum_ = sum_ + column(word(CAUSES, k)))
eval read_names
# what is drawn, read once from columns found by name: each cause with those below it
set table $rows separator comma
plot CSV using (note(int(column("panel")), column("reserved_bytes")), x_):(add(1)):(add(2)):(add(3)):(add(4)):(add(5)):(add(6)) with table
unset table
unset datafile columnheaders
top = 0
low = 1e30
do for [i = 1:COUNT] { top = PEAK[i] > top ? PEAK[i] : top; low = PEAK[i] < low ? PEAK[i] : low }
own = top > 3 * low
if (own) { SUBTITLE = SUBTITLE."\nvertical scales differ" }
eval measure_head
S = scale_of(top)
U = unit_of(top)

cols = COUNT == 1 ? 1 : 2
rows = (COUNT + cols - 1) / cols
PANEL = COUNT == 1 ? 280 : 190
eval sheet(560, HEAD + PANEL * rows + 40 + LEGEND_ROW * 3)
eval open_output
set multiplot
eval left_title("reserved memory (".U.")", HEAD + PANEL * rows / 2.0)
set label 1004 (EXTRA eq "s" ? "recorded time (s)" : "trace event (number)") at screen 0.5, py(HEAD + PANEL * rows + 8) center tc rgb INK
set xrange [0:top_x > 0 ? top_x : 1]
set xtics step(top_x, cols == 2 ? 4 : 7)
set grid ytics lc rgb GRID lt 1 lw 1 back
gap = 30
width = (W - 30 - 8.0) / cols
unset key
do for [i = 0:COUNT - 1] {
	if (FIRST[i + 1] < 0) { continue } # nothing was ever reserved
	r = i / cols
	c = i % cols
	eval across(30 + width * c + 42, 30 + width * (c + 1) - 8)
	eval down(HEAD + PANEL * r + gap, HEAD + PANEL * (r + 1) - 32)
	high = own ? PEAK[i + 1] : top
	high = high > 0 ? high : MIB
	set yrange [0:high / S * 1.04]
	set ytics step(high / S, 4)
	set label 1 short(NAME[i + 1], int((width - 30) / 7.9)) at graph 0, graph 1 left offset (cols == 2 ? -2.5 : 0), character 0.7 tc rgb INK
	plot for [k = 6:1:-1] $rows every ::FIRST[i + 1]::LAST[i + 1] using 1:(column(k + 1) / S) with fillsteps fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] notitle, \
		$rows every ::FIRST[i + 1]::LAST[i + 1] using 1:(column(7) / S) with steps lw 1 lc rgb AXIS notitle
	unset label 1001
	unset label 1002
	unset label 1003
	unset label 1004
}
# the legend, on an empty plot of its own
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen py(FOOT - 14 - LEGEND_ROW * 3)
set bmargin at screen 0
unset label 1
unset border
unset tics
unset grid
set xrange [0:1]
set yrange [0:1]
set key at screen px(10), py(FOOT - 8 - LEGEND_ROW * 3) left top Left reverse vertical maxrows 3 samplen 2 spacing 1.05 font FONT.",13.3"
plot for [k = 1:6] NaN with boxes fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] title CAUSE_NAME[k]
unset multiplot
