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
seconds(ns) = (ns > 0 ? ns : 1000) / 1e9
of(i) = column("series") == i ? seconds(column("driver_ns")) : NaN
y(c) = column(c) / S
WIDE = TOP > 6 * LOW
XL = floor(log10(LEAST_NS) - 0.1) - 9
XH = ceil(log10(MOST_NS) + 0.1) - 9
# with room below the bound for its label
YL = WIDE ? LOW / S / 1.4 : (LOW - 0.13 * (TOP - 0.8 * LOW)) / S
YH = WIDE ? TOP / S * 1.4 : (TOP + 0.05 * (TOP - 0.8 * LOW)) / S
# letters are beside their points, further to the right where another one is there
array LX[COUNT]
array LY[COUNT]
do for [i = 1:COUNT] { LX[i] = LY[i] = -99 * i }
up(v) = WIDE ? log10(v / YL) / log10(YH / YL) : (v - YL) / (YH - YL)
note(i, t, v) = v == v ? (LX[i + 1] = 80 + (W - 104) * (log10(t) - XL) / (XH - XL), LY[i + 1] = HEAD + TALL * (1 - up(v)) - 8) : 0
eval each("note(int(column('series')), seconds(column('driver_ns')), y('peak_reserved_bytes'))")
taken(i, k) = abs(LX[i] - LX[k]) < 12 && abs(LY[i] - LY[k]) < 12
do for [i = 1:COUNT] {
	do for [n = 1:i] { do for [k = 1:i - 1] { if (taken(i, k)) { LX[i] = LX[k] + 13 } } }
	set label i letter(i - 1) at screen px(LX[i]), py(LY[i]) left font FONT." Bold,13.3" tc rgb pcolor(i - 1)
}
set multiplot
eval across(68, W - 36)
eval down(HEAD, HEAD + TALL)
unset key
set xlabel "driver time of the whole trace, ".(MEASURED ? "measured" : "modelled")." (log)" tc rgb INK
set logscale x
set format x "%.0s %cs"
set xtics decades(LEAST_NS, MOST_NS, 4)
set xrange [10 ** XL:10 ** XH]
if (WIDE) { set logscale y }
set yrange [YL:YH]
eval left_title("peak reserved memory (".U.(WIDE ? ", log)" : ")"), HEAD + TALL / 2)
set grid xtics ytics
if (BOUND > 0) {
	set arrow 1 from graph 0, first BOUND / S to graph 1, first BOUND / S nohead lw 2 dt 2 lc rgb AXIS
	set label 901 "lower bound ".amount(BOUND, S) at graph 1, first BOUND / S right offset character -0.5, character -0.8 tc rgb INK
}
plot CSV using (column("front") == 1 ? seconds(column("driver_ns")) : NaN):(y("peak_reserved_bytes")) with points pt 6 ps 2.2 * DOT lw 1.6 lc rgb AXIS notitle, \
	for [i = 0:COUNT - 1] CSV using (of(i)):(y("peak_reserved_bytes")) with points pt (DONE[i + 1] ? ppoint(i) : 2) ps 1.3 * DOT lw 1.5 lc rgb pcolor(i) notitle
do for [i = 1:COUNT] { unset label i }
LEGEND_AT = HEAD + TALL + 64
eval legend_area
plot NaN notitle, keyentry with points pt 6 ps 2 * DOT lw 1.6 lc rgb AXIS title "no other is better in both", \
	for [i = 0:COUNT - 1] keyentry with points pt (DONE[i + 1] ? ppoint(i) : 2) ps 1.3 * DOT lw 1.5 lc rgb pcolor(i) title title_of(i)
unset multiplot
