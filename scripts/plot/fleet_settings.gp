# SPDX-License-Identifier: Apache-2.0
# All ranks under one setting: the sum of their peaks, beside what is live.
load ARG0[1:strlen(ARG0)-strlen("fleet_settings.gp")]."style.gp"
eval arguments
eval measure_head

array NAMES[512]
COUNT = 0
note(s) = (COUNT = COUNT + 1, NAMES[COUNT] = s, 0)
set table $notes
plot CSV using (note(strcol("setting"))) with table
unset table
stats CSV using (column("reserved_bytes")) nooutput
top = STATS_max > MIB ? STATS_max : MIB
S = scale_of(top)

ROW = 34
body = ROW * COUNT + 8
eval sheet(560, HEAD + body + 102)
eval open_output
eval head
set lmargin at screen px(190)
set rmargin at screen px(W - 84)
set tmargin at screen py(HEAD)
set bmargin at screen py(HEAD + body)
set key at screen px(12), py(HEAD + body + 54) left top Left reverse vertical maxrows 2 samplen 2 spacing 1.05 font FONT.",13.3"
set xlabel "peaks of all ranks added up (".unit_of(top).")" tc rgb INK
set xrange [0:top / S]
set yrange [-COUNT + 0.4:0.6]
unset ytics
set grid noytics xtics lc rgb GRID lt 1 lw 1
do for [i = 1:COUNT] {
	set label i cut(NAMES[i], 24) at graph 0, first 1 - i right offset character -0.7, 0 tc rgb INK
}
row = '-column(0)'
plot CSV using (column("reserved_bytes") / S / 2):(@row):(column("reserved_bytes") / S / 2):(0.3) with boxxyerror fs solid 0.5 noborder lc rgb BLUE title "reserved", \
	"" using (column("live_bytes") / S / 2):(@row):(column("live_bytes") / S / 2):(0.3) with boxxyerror fs solid 1.0 noborder lc rgb AREA title "of that live", \
	"" using (column("reserved_bytes") / S):(@row):(amount(column("reserved_bytes"), S)) with labels left offset 0.4, 0 tc rgb INK font FONT.",13.3" notitle
