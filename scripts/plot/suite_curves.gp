# SPDX-License-Identifier: Apache-2.0
# Refused requests by capacity, a panel for each class of the suite.
# CSV: series, policy, panel, class, percent, refused_ratio.
load ARG0[1:strlen(ARG0)-strlen("suite_curves.gp")]."style.gp"
eval arguments

array CLASS[64]
PANELS = 0
keep(i, s) = (CLASS[i + 1] = s, PANELS = i + 1 > PANELS ? i + 1 : PANELS, 0)
eval each("keep(int(column('panel')), stringcolumn('class'))")
array LINE[512]
LINES = 0
line(i, s) = (i > last ? (LINES = LINES + 1, LINE[LINES] = i, last = i) : 0, 0)
last = -1
eval each("line(int(column('series')), '')")
eval read_names
COLS = 3
PITCH = 168
LONGEST = LONGEST > LEGEND_NAME ? LEGEND_NAME : LONGEST
rows = legend_rows(LINES, LONGEST)
deep = PITCH * int((PANELS + COLS - 1) / COLS)
eval open(HEAD + deep + 40 + LEGEND_ROW * rows)
set multiplot
eval left_title("refused requests (%)", HEAD + deep / 2)
set label 1004 "memory of the card, of the live peak (%)" at screen 0.5, py(HEAD + deep + 12) center tc rgb INK font SMALL
unset key
set xrange [-0.3:5.3]
place(p) = p < 101 ? 0 : p < 104 ? 1 : p < 107 ? 2 : p < 120 ? 3 : p < 130 ? 4 : 5
set xtics ("100" 0, "" 1, "105" 2, "" 3, "" 4, "150" 5) font SMALL
set ytics font SMALL
panel(i) = int(column("panel")) == i
WIDE = (W - 60) / COLS
do for [i = 0:PANELS - 1] {
	X = 60 + WIDE * (i % COLS)
	Y = HEAD + PITCH * int(i / COLS)
	set yrange [*:*] # which limits what is looked at
	eval limits_of("panel(i) ? 100 * column('refused_ratio') : NaN")
	most = STATS_max > 0 ? STATS_max : 1
	set yrange [0:1.06 * most]
	set ytics step(most, 4)
	eval across(X + 30, X + WIDE - 6)
	eval down(Y + 22, Y + PITCH - 30)
	set label 1005 short(CLASS[i + 1], 20) at graph 0, graph 1.12 left tc rgb INK font SMALL
	plot for [k = 1:LINES] CSV using (panel(i) && column("series") == LINE[k] ? place(column("percent")) : NaN):(100 * column("refused_ratio")) \
		with linespoints lw 2 pt ppoint(LINE[k]) ps DOT dt k lc rgb pcolor(LINE[k])
	unset label 1003
	unset label 1004
	unset label 1001
	unset label 1002
}
LEGEND_AT = HEAD + deep + 26
eval legend_area
plot NaN notitle, for [k = 1:LINES] keyentry with linespoints lw 2 pt ppoint(LINE[k]) ps DOT dt k lc rgb pcolor(LINE[k]) title letter(LINE[k])."  ".cut(NAME[LINE[k] + 1], LEGEND_NAME)
unset multiplot
