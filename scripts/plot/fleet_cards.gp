# SPDX-License-Identifier: Apache-2.0
# Cards of each kind: today, with the settings of the plan, shared.
load ARG0[1:strlen(ARG0)-strlen("fleet_cards.gp")]."style.gp"
eval arguments

array CARD[128]
COUNT = 0
top = 1
larger(a, b) = a > b ? a : b
note(s) = (COUNT = COUNT + 1, CARD[COUNT] = s, top = larger(top, larger(column("today_count"), larger(column("then_count"), column("shared_count")))), 0)
eval each("note(strcol('card'))")

ROW = 54
body = ROW * COUNT + 8
eval open(HEAD + body + 126)
eval across(190, W - 50)
eval down(HEAD, HEAD + body)
eval key_below(12, HEAD + body + 62, 3)
set xlabel "cards" tc rgb INK
set xrange [0:top * 1.08]
set yrange [-COUNT + 0.5:0.5]
unset ytics
set grid noytics xtics
do for [i = 1:COUNT] {
	set label i cut(CARD[i], 24) at graph 0, first 1 - i right offset character -0.7, 0 tc rgb INK
}
row = '-column(0)'
plot CSV using (column("today_count") / 2.0):(@row + 0.27):(column("today_count") / 2.0):(0.12) with boxxyerror fs solid 1.0 noborder lc rgb MID title "today", \
	"" using (column("then_count") / 2.0):(@row):(column("then_count") / 2.0):(0.12) with boxxyerror fs solid 1.0 noborder lc rgb BLUE title "with the settings of the plan", \
	"" using (column("shared_count") / 2.0):(@row - 0.27):(column("shared_count") / 2.0):(0.12) with boxxyerror fs pattern HATCHED noborder lc rgb BLUE title "and ranks sharing cards", \
	"" using (column("today_count")):(@row + 0.27):(sprintf("%d", column("today_count"))) with labels left offset 0.4, 0 tc rgb INK font SMALL notitle, \
	"" using (column("then_count")):(@row):(sprintf("%d", column("then_count"))) with labels left offset 0.4, 0 tc rgb INK font SMALL notitle, \
	"" using (column("shared_count")):(@row - 0.27):(column("shared_count") > 0 ? sprintf("%d", column("shared_count")) : "") with labels left offset 0.4, 0 tc rgb INK font SMALL notitle
