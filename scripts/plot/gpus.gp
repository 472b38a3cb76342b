# SPDX-License-Identifier: Apache-2.0
# Grid of policies and known cards: peak reserved in percent of the card.
load ARG0[1:strlen(ARG0)-strlen("gpus.gp")]."style.gp"
eval arguments

array CARD[64]
CARDS = 0
note(c, s) = (CARD[int(c) + 1] = s, CARDS = c + 1 > CARDS ? int(c) + 1 : CARDS, 0)
eval read_names
eval each("note(column('card_no'), strcol('card_label'))")

ROW = pitch(34)
body = ROW * COUNT
TOP = HEAD + 112
eval open(TOP + body + 72)
left = name_room(LONGEST)
cell = (W - left - 62.0) / CARDS
cell = cell > 60 ? 60 : cell
eval across(left, left + cell * CARDS)
eval down(TOP, TOP + body)
set xrange [-0.5:CARDS - 0.5]
eval name_rows
set yrange [-COUNT + 0.5:0.5]
unset xtics
unset grid
unset border
unset key
strip(s, w) = s[1:strlen(w)] eq w ? s[strlen(w) + 1:*] : s
short(s) = strip(strip(strip(strip(s, "NVIDIA "), "Tesla "), "GeForce "), "AMD Instinct ")
do for [c = 0:CARDS - 1] {
	set label c + 301 cut(short(CARD[c + 1]), 17) at first c - 0.15, graph 1 left rotate by 45 offset 0, character 0.4 tc rgb INK
}
set label 901 "peak reserved in percent of the card without its context:" at screen px(12), py(FOOT - 50) left tc rgb INK
set label 902 "up to 90 with the margin, up to 100 tight," at screen px(12), py(FOOT - 33) left tc rgb INK
set label 903 "hatched: it does not fit" at screen px(12), py(FOOT - 16) left tc rgb INK
ratio(r) = r >= 10 ? sprintf("%.0fx", r) : sprintf("%.0f", 100 * r > 100 && 100 * r < 101 ? 101 : 100 * r)
# tints of the sky for what fits (paler = more headroom); what does not is grey and hatched
tint(r) = r > 1 ? 0xdadde0 : r > 0.9 ? 0x56b4e9 : r > 0.5 ? 0xa5cfea : 0xd9ebf7
over(v) = column("used_ratio") > 1 ? v : NaN
plot CSV using (column("card_no")):(-column("rank")):(0.47):(0.45):(tint(column("used_ratio"))) with boxxyerror fs solid 1.0 noborder lc rgb variable, \
	CSV using (over(column("card_no"))):(-column("rank")):(0.47):(0.45) with boxxyerror fs transparent pattern 5 noborder lc rgb MID, \
	CSV using (column("card_no")):(-column("rank")):(ratio(column("used_ratio"))) with labels center font SMALL tc rgb "#101010"
