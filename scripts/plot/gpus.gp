# SPDX-License-Identifier: Apache-2.0
# Grid of policies and known cards: peak reserved in percent of the card.
load ARG0[1:strlen(ARG0)-strlen("gpus.gp")]."style.gp"
eval arguments
eval measure_head

array CARD[64]
CARDS = 0
note(c, s) = (CARD[int(c) + 1] = s, CARDS = c + 1 > CARDS ? int(c) + 1 : CARDS, 0)
eval read_names
set table $notes
plot CSV using (note(column("card_no"), strcol("card_label"))) with table
unset table

ROW = 27
body = ROW * COUNT
TOP = HEAD + 104
eval sheet(900, TOP + body + 44)
eval open_output
eval head
left = 30 + 7.9 * (LONGEST < NAME_WIDTH ? LONGEST : NAME_WIDTH)
cell = (W - left - 84.0) / CARDS
cell = cell > 60 ? 60 : cell
set lmargin at screen px(left)
set rmargin at screen px(left + cell * CARDS)
set tmargin at screen py(TOP)
set bmargin at screen py(TOP + body)
set xrange [-0.5:CARDS - 0.5]
set yrange [-COUNT + 0.5:0.5]
unset xtics
unset ytics
unset grid
unset border
unset key
strip(s, w) = s[1:strlen(w)] eq w ? s[strlen(w) + 1:*] : s
short(s) = strip(strip(strip(s, "NVIDIA "), "GeForce "), "AMD Instinct ")
do for [i = 0:COUNT - 1] {
	set label i + 1 fold(NAME[i + 1]) at first -0.5, first -i right offset character -0.8, character (strlen(NAME[i + 1]) > NAME_WIDTH ? 0.45 : 0) font FONT.",13" tc rgb INK
}
do for [c = 0:CARDS - 1] {
	set label c + 301 cut(short(CARD[c + 1]), 22) at first c - 0.15, graph 1 left rotate by 45 offset 0, character 0.4 font FONT.",12.5" tc rgb INK
}
set label 901 "peak reserved, in percent of the card's memory without the CUDA context; above 100 it does not fit" at screen px(14), py(FOOT - 18) left font FONT.",12.5" tc rgb INK
ratio(r) = r >= 10 ? sprintf("%.0fx", r) : sprintf("%.0f", 100 * r > 100 && 100 * r < 101 ? 101 : 100 * r)
# blue tints for what fits (paler = more headroom), orange for what does not
tint(r) = r > 1 ? 0xf2b27a : r > 0.9 ? 0x6fb1dc : r > 0.5 ? 0xa5cfea : 0xd3e7f4
set style fill solid 1.0 noborder
plot CSV using (column("card_no")):(-column("rank")):(0.47):(0.45):(tint(column("used_ratio"))) with boxxyerror lc rgb variable, \
	CSV using (column("card_no")):(-column("rank")):(ratio(column("used_ratio"))) with labels center font FONT.",12.5" tc rgb "#101010"
