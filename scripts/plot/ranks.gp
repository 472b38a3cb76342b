# SPDX-License-Identifier: Apache-2.0
# Peak reserved of every rank, device or trace, a row per policy; of programs by the recorded one.
# EXTRA: what the units are.
load ARG0[1:strlen(ARG0)-strlen("ranks.gp")]."style.gp"
eval arguments

relative = EXTRA eq "programs"
VALUE = relative ? "of_recorded_ratio" : "peak_reserved_bytes"
array SERIES[512]
array WORST[512]
array LEAST[512]
array UNIT[512]
top = 0
do for [i = 1:512] { WORST[i] = 0; LEAST[i] = 1e30; UNIT[i] = "" }
see(i, v) = (SERIES[i + 1] = int(column("series")), LEAST[i + 1] = v < LEAST[i + 1] ? v : LEAST[i + 1], UNIT[i + 1] = v > WORST[i + 1] ? strcol("unit") : UNIT[i + 1], WORST[i + 1] = v > WORST[i + 1] ? v : WORST[i + 1], top = v > top ? v : top, 0)
eval read_names
eval each("see(int(column('row')), column(VALUE))")
top = top > 0 ? top : MIB
S = relative ? 1 : scale_of(top)
text_of(v) = relative ? sprintf("%.2f", v) : amount(v, S)

ROW = pitch(40)
body = ROW * COUNT + 18
eval open(HEAD + body + 82)
eval across(name_room(LONGEST), W - 14)
eval down(HEAD, HEAD + body)
set xlabel "peak reserved memory".(relative ? ", 1: as recorded" : " (".unit_of(top).")") tc rgb INK
set xrange [0:top / S * 1.1]
set xtics step(top / S * 1.1, 6)
eval name_rows
set yrange [-COUNT + 0.25:0.6]
unset key
do for [i = 0:COUNT - 1] {
	if (WORST[i + 1] > 0) {
		set arrow i + 1 from first LEAST[i + 1] / S, first -i to first WORST[i + 1] / S, first -i nohead lw 2 lc rgb pcolor(SERIES[i + 1])
		label_text = cut(UNIT[i + 1], 22)." ".text_of(WORST[i + 1])
		# beside the marks where there is room, else below them; never over the names
		if (WORST[i + 1] < 0.42 * top) {
			set label i + 301 label_text at first WORST[i + 1] / S, first -i left offset character 1, 0 tc rgb INK
		} else {
			if (LEAST[i + 1] > 0.62 * top) {
				set label i + 301 label_text at first LEAST[i + 1] / S, first -i right offset character -1, 0 tc rgb INK
			} else {
				set label i + 301 label_text at first (WORST[i + 1] > 0.62 * top ? WORST[i + 1] : 0.62 * top) / S, first -i right offset character 0.5, character -1 tc rgb INK
			}
		}
	}
}
set label 901 "a mark for each of the ".EXTRA."; filled: the one that needs most" at screen px(12), py(FOOT - 16) left tc rgb INK
plot CSV using (column("completed") == 1 ? column(VALUE) / S : NaN):(-column("row")):(int("0x".pcolor(column("series"))[2:7])) with points pt 6 ps 1.1 * DOT lw 1.5 lc rgb variable, \
	CSV using (column("worst") == 1 ? column(VALUE) / S : NaN):(-column("row")):(int("0x".pcolor(column("series"))[2:7])) with points pt 7 ps 1.5 * DOT lc rgb variable, \
	CSV using (column("completed") == 1 ? NaN : column(VALUE) / S):(-column("row")) with points pt 2 ps 1.2 * DOT lw 2 lc rgb AXIS
