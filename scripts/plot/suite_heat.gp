# SPDX-License-Identifier: Apache-2.0
# A field for each policy on each workload of the suite.
# CSV: series, workload, column, policy, space (empty: not completed).
load ARG0[1:strlen(ARG0)-strlen("suite_heat.gp")]."style.gp"
eval arguments

array COLUMN[512]
COLUMNS = 0
deep = 0
keep(i, s) = (COLUMN[i + 1] = s, COLUMNS = i + 1 > COLUMNS ? i + 1 : COLUMNS, deep = strlen(s) > deep ? strlen(s) : deep, 0)
eval each("keep(int(column('column')), short(stringcolumn('policy'), 18))")
eval read_names
# darker is more: one hue, so that grey says the same; 2 is as dark as it gets
shade(v) = v <= 0.5 ? 0 : v >= 2 ? 1 : (log(v) - log(0.5)) / log(4)
mix(from, to, s) = int(from + (to - from) * s)
ink(v) = v != v ? 0 : 65536 * mix(238, 8, shade(v)) + 256 * mix(244, 48, shade(v)) + mix(250, 107, shade(v))

ROW = pitch(21)
UNDER = 14 + 7.4 * deep
body = ROW * COUNT
eval open(HEAD + body + UNDER + 66)
eval across(name_room(LONGEST), W - 16)
eval down(HEAD, HEAD + body)
eval name_rows
set yrange [-COUNT + 0.5:0.5]
set border 0
unset grid
set xrange [-0.5:COLUMNS - 0.5]
unset xtics
do for [i = 1:COLUMNS] { set label 600 + i COLUMN[i] at first i - 1, graph 0 right offset 0, character -0.5 rotate by 90 font SMALL tc rgb INK }
set style fill solid 1.0
eval key_below(12, HEAD + body + UNDER + 14, 2)
there(v) = v == v ? 1 : 0
plot CSV using (there(column("space")) ? column("column") : NaN):(-column("series")):(0.46):(0.44):(ink(column("space"))) with boxxyerror lc rgb variable notitle, \
	CSV using (there(column("space")) ? NaN : column("column")):(-column("series")) with points pt 2 ps 0.9 * DOT lw 1.4 lc rgb AXIS title "not completed", \
	keyentry with boxes fs solid 1.0 noborder lc rgb ink(0.5) title "half", \
	keyentry with boxes fs solid 1.0 noborder lc rgb ink(1) title "as much", \
	keyentry with boxes fs solid 1.0 noborder lc rgb ink(2) title "twice or more"
