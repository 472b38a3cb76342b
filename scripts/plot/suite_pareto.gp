# SPDX-License-Identifier: Apache-2.0
# Scores of the suite: space against time, over the baseline's.
# CSV: series, policy, space, time, complete, front.
load ARG0[1:strlen(ARG0)-strlen("suite_pareto.gp")]."style.gp"
eval arguments
eval read_names

title_of(i) = letter(i)."  ".short(NAME[i + 1], 18)
LONGEST = 21
rows = legend_rows(COUNT + 1, LONGEST)
TALL = tall(300, rows)
eval limits_of("column('space')")
top = STATS_max
low = STATS_min
eval limits_of("column('time')")
eval open(HEAD + TALL + 74 + LEGEND_ROW * rows)
set multiplot
eval across(68, W - 36)
eval down(HEAD, HEAD + TALL)
unset key
set xlabel "driver time, over PyTorch's default (log)" tc rgb INK
eval left_title("memory, over PyTorch's default (log)", HEAD + TALL / 2)
set logscale xy
set grid xtics ytics
floor_time = STATS_min > 0.01 ? STATS_min : 0.01
set xrange [floor_time / 1.4:STATS_max * 1.6]
set yrange [low / 1.1:top * 1.1]
set xtics (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
set ytics (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 5, 10)
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lw 2 dt 2 lc rgb AXIS
set arrow 2 from graph 0, first 1 to graph 1, first 1 nohead lw 2 dt 2 lc rgb AXIS
x(v) = v > floor_time ? v : floor_time
of(i) = column("series") == i ? x(column("time")) : NaN
mark(i, whole) = column("complete") == whole ? of(i) : NaN
plot CSV using (column("front") == 1 ? x(column("time")) : NaN):"space" with points pt 6 ps 2.2 * DOT lw 1.6 lc rgb AXIS notitle, \
	for [i = 0:COUNT - 1] CSV using (mark(i, 1)):"space" with points pt ppoint(i) ps 1.3 * DOT lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (mark(i, 0)):"space" with points pt 2 ps 1.3 * DOT lw 1.5 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (of(i)):"space":(letter(i)) with labels left offset character 0.8, character 0.4 font SMALL tc rgb pcolor(i) notitle
LEGEND_AT = HEAD + TALL + 64
eval legend_area
plot NaN notitle, keyentry with points pt 6 ps 2 * DOT lw 1.6 lc rgb AXIS title "not beaten in both", \
	for [i = 0:COUNT - 1] keyentry with points pt ppoint(i) ps 1.3 * DOT lc rgb pcolor(i) title title_of(i)
unset multiplot
