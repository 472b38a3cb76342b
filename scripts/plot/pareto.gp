# SPDX-License-Identifier: Apache-2.0
# Peak reserved memory against time in the driver. EXTRA: see chart_pareto.c.
load ARG0[1:strlen(ARG0)-strlen("pareto.gp")]."style.gp"
eval arguments

eval EXTRA
eval read_names
S = scale_of(HIGHEST)
U = unit_of(HIGHEST)
title_of(i) = letter(i)."  ".short(NAME[i + 1], DONE[i + 1] ? LEGEND_NAME : LEGEND_NAME - 16).(DONE[i + 1] ? "" : " (out of memory)")
LONGEST = 20
do for [i = 0:COUNT - 1] { LONGEST = strlen(title_of(i)) > LONGEST ? strlen(title_of(i)) : LONGEST }

rows = legend_rows(COUNT + 1, LONGEST)
TALL = tall(280, rows)
eval open(HEAD + TALL + 74 + LEGEND_ROW * rows)
set multiplot
eval across(68, W - 36)
eval down(HEAD, HEAD + TALL)
unset key
set xlabel "driver time of the whole trace, ".(MEASURED ? "measured" : "modelled")." (log)" tc rgb INK
set logscale x
set format x "%.0s %cs"
set xtics decades(LEAST_NS, MOST_NS, 4)
set xrange [10 ** floor(log10(LEAST_NS) - 0.1) / 1e9:10 ** ceil(log10(MOST_NS) + 0.1) / 1e9]
if (TOP > 6 * LOW) {
	set logscale y
	set yrange [LOW / S / 1.4:TOP / S * 1.4]
} else {
	# room below the bound for its label
	set yrange [(LOW - 0.13 * (TOP - 0.8 * LOW)) / S:(TOP + 0.05 * (TOP - 0.8 * LOW)) / S]
}
eval left_title("peak reserved memory (".U.(TOP > 6 * LOW ? ", log)" : ")"), HEAD + TALL / 2)
set grid xtics ytics
if (BOUND > 0) {
	set arrow 1 from graph 0, first BOUND / S to graph 1, first BOUND / S nohead lw 2 dt 2 lc rgb AXIS
	set label 901 "lower bound ".amount(BOUND, S) at graph 1, first BOUND / S right offset character -0.5, character -0.8 tc rgb INK
}
seconds(ns) = (ns > 0 ? ns : 1000) / 1e9
of(i) = column("series") == i ? seconds(column("driver_ns")) : NaN
y(c) = column(c) / S
plot CSV using (column("front") == 1 ? seconds(column("driver_ns")) : NaN):(y("peak_reserved_bytes")) with points pt 6 ps 2.2 * DOT lw 1.6 lc rgb AXIS notitle, \
	for [i = 0:COUNT - 1] CSV using (of(i)):(y("peak_reserved_bytes")) with points pt (DONE[i + 1] ? ppoint(i) : 2) ps 1.3 * DOT lw 1.5 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (of(i)):(y("peak_reserved_bytes")):(letter(i)) with labels left offset character 1, character 0.5 font FONT." Bold,13.3" tc rgb pcolor(i) notitle
LEGEND_AT = HEAD + TALL + 64
eval legend_area
plot NaN notitle, keyentry with points pt 6 ps 2 * DOT lw 1.6 lc rgb AXIS title "no other is better in both", \
	for [i = 0:COUNT - 1] keyentry with points pt (DONE[i + 1] ? ppoint(i) : 2) ps 1.3 * DOT lw 1.5 lc rgb pcolor(i) title title_of(i)
unset multiplot
