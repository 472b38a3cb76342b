# SPDX-License-Identifier: Apache-2.0
# Peak reserved per policy, stacked by cause, with the lower bound and the offline placement.
load ARG0[1:strlen(ARG0)-strlen("peak.gp")]."style.gp"
eval arguments
eval measure_head

array DONE[256]
array PEAK[256]
bound = 0
place = 0
note(i) = (DONE[int(i) + 1] = int(column("completed")), PEAK[int(i) + 1] = column("peak_reserved_bytes"), bound = column("lower_bound_bytes"), place = column("placement_bytes"), 0)
eval read_names
set table $notes
plot CSV using (note(column("rank"))) with table
unset table
place = place == place ? place : 0
top = bound > place ? bound : place
do for [i = 1:COUNT] { top = PEAK[i] > top ? PEAK[i] : top }
top = top > 0 ? top : MIB
S = scale_of(top)
U = unit_of(top)

ROW = 30
body = ROW * COUNT + 14
eval sheet(900, HEAD + 24 + body + 118)
eval open_output
eval head
left = 30 + 7.9 * (LONGEST < NAME_WIDTH ? LONGEST : NAME_WIDTH)
set lmargin at screen px(left)
set rmargin at screen px(W - 24)
set tmargin at screen py(HEAD + 24)
set bmargin at screen py(HEAD + 24 + body)
set key at screen px(20), py(HEAD + 24 + body + 68) left top Left reverse vertical maxrows 2 samplen 1.6
set xlabel "peak reserved memory (".U.")" tc rgb INK
failed = 0
do for [i = 1:COUNT] { failed = failed || !DONE[i] }
set xrange [0:top / S * (failed ? 1.5 : 1.2)]
set yrange [-COUNT + 0.4:0.6]
unset ytics
set grid noytics xtics lc rgb GRID lt 1 lw 1
set border 1
do for [i = 0:COUNT - 1] {
	set label i + 1 fold(NAME[i + 1]) at first 0, first -i right offset character -0.8, character (strlen(NAME[i + 1]) > NAME_WIDTH ? 0.45 : 0) font FONT.",13" tc rgb INK
	set label i + 301 amount(PEAK[i + 1], S).(DONE[i + 1] ? "" : ", out of memory") at first PEAK[i + 1] / S, first -i left offset character (DONE[i + 1] ? 0.6 : 1.4), 0 font FONT.",13" tc rgb INK
}
# one label to each side, or one for both
same = alike(bound, place, top)
if (bound > 0) {
	set arrow 1 from first bound / S, graph 0 to first bound / S, graph 1 nohead lw 2 dt 2 lc rgb INK front
	set label 901 (same ? both(bound, place, S) : "lower bound ".amount(bound, S)) at first bound / S, graph 1 right offset character (same ? 15 : 0.4), character 0.6 font FONT.",12.5" tc rgb INK
}
if (place > 0 && !same) {
	set arrow 2 from first place / S, graph 0 to first place / S, graph 1 nohead lw 2 dt 3 lc rgb INK front
	set label 902 "offline placement ".amount(place, S) at first place / S, graph 1 left offset character 1.2, character 0.6 font FONT.",12.5" tc rgb INK
}

array SUM[7]
upto(n) = (sum [k = 1:n] column(word(CAUSES, k))) / S
half = 0.36
set style fill solid 1.0 noborder
plot for [k = 1:6] CSV using (upto(k)):(-column("rank")):(k == 1 ? 0 : upto(k - 1)):(upto(k)):(-column("rank") - half):(-column("rank") + half) with boxxyerror lc rgb CAUSE_COLOR[k] title CAUSE_NAME[k], \
	CSV using (column("completed") == 1 ? NaN : upto(6)):(-column("rank")) with points pt 2 ps 1.3 * DOT lw 3 lc rgb AXIS notitle
