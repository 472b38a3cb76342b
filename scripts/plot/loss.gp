# SPDX-License-Identifier: Apache-2.0
# Reserved memory by cause over time, one panel per policy. EXTRA: see chart_loss.c.
load ARG0[1:strlen(ARG0)-strlen("loss.gp")]."style.gp"
eval arguments
eval EXTRA
eval read_names
X = SECONDS ? "time_s" : "event"
# a cause with those below it
stacked(k) = (sum [j = 1:k] column(word(CAUSES, j)))
if (OWN) { SUBTITLE = SUBTITLE."\nvertical scales differ" }
eval measure_head
S = scale_of(TOP)
U = unit_of(TOP)

cols = COUNT == 1 ? 1 : 2
up = (COUNT + cols - 1) / cols
PANEL = COUNT == 1 ? 280 : 190
eval open(HEAD + PANEL * up + 40 + LEGEND_ROW * 3)
set multiplot
eval left_title("reserved memory (".U.")", HEAD + PANEL * up / 2.0)
set label 1004 (SECONDS ? "recorded time (s)" : "trace event (number)") at screen 0.5, py(HEAD + PANEL * up + 8) center tc rgb INK
set xrange [0:LAST_X > 0 ? LAST_X : 1]
set xtics step(LAST_X, cols == 2 ? 4 : 7)
set grid ytics lc rgb GRID lt 1 lw 1 back
gap = 30
width = (W - 30 - 8.0) / cols
unset key
do for [i = 0:COUNT - 1] {
	if (LAST[i + 1] < FIRST[i + 1]) { continue } # nothing was ever reserved
	r = i / cols
	c = i % cols
	eval across(30 + width * c + 42, 30 + width * (c + 1) - 8)
	eval down(HEAD + PANEL * r + gap, HEAD + PANEL * (r + 1) - 32)
	high = OWN ? PEAK[i + 1] : TOP
	high = high > 0 ? high : MIB
	set yrange [0:high / S * 1.04]
	set ytics step(high / S, 4)
	set label 1 short(NAME[i + 1], int((width - 30) / 7.9)) at graph 0, graph 1 left offset (cols == 2 ? -2.5 : 0), character 0.7 tc rgb INK
	plot for [k = 6:1:-1] CSV every ::FIRST[i + 1]::LAST[i + 1] using X:(stacked(k) / S) with fillsteps fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] notitle, \
		CSV every ::FIRST[i + 1]::LAST[i + 1] using X:(stacked(6) / S) with steps lw 1 lc rgb AXIS notitle
	eval headed
}
rows = 3
LEGEND_AT = FOOT - 8 - LEGEND_ROW * rows
eval legend_area
plot NaN notitle, for [k = 1:6] keyentry with boxes fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] title CAUSE_NAME[k]
unset multiplot
