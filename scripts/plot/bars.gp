# SPDX-License-Identifier: Apache-2.0
# A bar of bytes in each row (third column), and a part of it (fourth), darker. EXTRA: what the axis
# shows, what the whole bar is, and what its part is, separated by '|'.
load ARG0[1:strlen(ARG0)-strlen("bars.gp")]."style.gp"
eval arguments
eval read_names

rest(s) = s[strstrt(s, "|") + 1:*]
front(s) = strstrt(s, "|") ? s[1:strstrt(s, "|") - 1] : s
eval limits_of("column(3)")
top = STATS_max > MIB ? STATS_max : MIB
S = scale_of(top)

ROW = pitch(40)
body = ROW * COUNT + 8
eval open(HEAD + body + 110)
eval across(name_room(LONGEST), W - 84)
eval down(HEAD, HEAD + body)
eval key_below(12, HEAD + body + 62, 2)
set xlabel front(EXTRA)." (".unit_of(top).")" tc rgb INK
set xrange [0:top / S]
eval name_rows
set border 3
row = '-column(0)'
plot CSV using (column(3) / S / 2):(@row):(column(3) / S / 2):(0.3) with boxxyerror fs solid 0.5 noborder lc rgb BLUE title front(rest(EXTRA)), \
	"" using (column(4) / S / 2):(@row):(column(4) / S / 2):(0.3) with boxxyerror fs solid 1.0 noborder lc rgb AREA title rest(rest(EXTRA)), \
	"" using (known(column(3)) / S):(@row):(column(3) >= 0 ? amount(column(3), S) : "") with labels left offset 0.4, 0 tc rgb INK font SMALL notitle, \
	"" using (known(column(4)) / S):(@row):(column(4) < 0.98 * column(3) && column(4) > 0.3 * top ? number(column(4), S) : "") with labels right offset -0.4, 0 tc rgb INK font SMALL notitle
