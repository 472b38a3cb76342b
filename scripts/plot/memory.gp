# SPDX-License-Identifier: Apache-2.0
# Memory over time: reserved of every policy, active and requested. EXTRA: see frag_plot_curves.
load ARG0[1:strlen(ARG0)-strlen("memory.gp")]."style.gp"
eval arguments
eval EXTRA
eval read_names
X = SECONDS ? "time_s" : "event"
card_name = ""
plot_first = "set table $first; plot CSV every ::0::0 using (card_name = strcol('card'), 0) with table; unset table"
eval plot_first
# what a card has is drawn where it is not far away, and said where it is
near(v) = v > 0 && v < 1.3 * TOP
S = scale_of(TOP)
U = unit_of(TOP)
title_of(i) = letter(i)."  ".short(NAME[i + 1], LEGEND_NAME - 20).", ".amount(PEAK[i + 1], scale_of(PEAK[i + 1])).(OOM[i + 1] ? ", out of memory" : BEYOND[i + 1] ? " (beyond)" : "")
LONGEST = 0
do for [i = 0:COUNT - 1] { LONGEST = strlen(title_of(i)) > LONGEST ? strlen(title_of(i)) : LONGEST }
same = alike(BOUND, PLACE, TOP)
bound_title = same ? both(BOUND, PLACE, scale_of(BOUND)) : "lower bound ".amount(BOUND, scale_of(BOUND))
PLACE = same ? 0 : PLACE
LONGEST = BOUND > 0 && strlen(bound_title) > LONGEST ? strlen(bound_title) : LONGEST
room_title = "limit of this replay ".amount(ROOM, scale_of(ROOM)).(near(ROOM) ? "" : " (above)")
card_title = card_name.": ".amount(CARD, scale_of(CARD)).(near(CARD) ? "" : " (above)")
has_room = ROOM > 0
has_card = CARD > 0 && CARD != ROOM
LONGEST = has_card && strlen(card_title) > LONGEST ? strlen(card_title) : LONGEST
entries = COUNT + 2 + (BOUND > 0) + (PLACE > 0) + has_room + has_card + STEPS
rows = legend_rows(entries, LONGEST)
TALL = tall(280, rows)
eval open(HEAD + TALL + 72 + LEGEND_ROW * rows)
set multiplot
unset key
eval across(68, W - 30)
eval down(HEAD, HEAD + TALL)
eval left_title("memory (".U.")", HEAD + TALL / 2)
set xlabel (SECONDS ? "recorded time (s)" : "trace event (number)") tc rgb INK
most = HIGH / S * (CLIPPED ? 1.25 : 1.08)
set yrange [0:most]
set xrange [0:LAST_X > 0 ? LAST_X : 1]
set xtics step(LAST_X, 7)
y(c) = column(c."_max_bytes") / S
# lines across the sheet, their sizes in the legend
if (BOUND > 0) { set arrow 1 from graph 0, first BOUND / S to graph 1, first BOUND / S nohead lw 2 dt 2 lc rgb INK front }
if (PLACE > 0) { set arrow 2 from graph 0, first PLACE / S to graph 1, first PLACE / S nohead lw 2 dt 3 lc rgb INK front }
if (has_room && near(ROOM)) { set arrow 3 from graph 0, first ROOM / S to graph 1, first ROOM / S nohead lw 3 dt 1 lc rgb INK front }
if (has_card && near(CARD)) { set arrow 4 from graph 0, first CARD / S to graph 1, first CARD / S nohead lw 2.5 dt 1 lc rgb SKY front }
# letters where the curves end, moved apart
LABELS = COUNT
GAP = 15
do for [i = 1:COUNT] { v = END_Y[i] / S; Y[i] = HEAD + TALL * (1 - (v < most ? v / most : 1)) }
eval spread_labels
do for [i = 1:COUNT] {
	if (OOM[i]) {
		set label 100 + i letter(i - 1) at first END_X[i], first (END_Y[i] < HIGH * 1.2 ? END_Y[i] : HIGH * 1.2) / S left offset character 0.9, character 0.4 font FONT." Bold,13.5" tc rgb pcolor(i - 1) front
	} else {
		set label 100 + i letter(i - 1) at screen px(W - 26), py(Y[i]) left font FONT." Bold,13.5" tc rgb pcolor(i - 1) front
	}
}
# marks on the lines repeat what their colours say
stride = int((LAST[COUNT] + 1) / COUNT / 5) + 1
mark(i, row) = int(row) % stride == int(i * stride / COUNT) ? column(X) : NaN

plot CSV every ::FIRST[BASE + 1]::LAST[BASE + 1] using X:(y("requested")) with fillsteps fs solid 1.0 noborder lc rgb AREA notitle, \
	CSV every ::FIRST[BASE + 1]::LAST[BASE + 1] using X:(y("active")) with steps lw 1 lc rgb AXIS notitle, \
	for [i = 0:COUNT - 1] CSV every ::FIRST[i + 1]::LAST[i + 1] using X:(y("reserved")) with steps lw 2.2 dt 1 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV every ::FIRST[i + 1]::LAST[i + 1] using (mark(i, $0 + FIRST[i + 1])):(y("reserved")) with points pt ppoint(i) ps 1 * DOT lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV every ::LAST[i + 1]::LAST[i + 1] using (OOM[i + 1] ? column(X) : NaN):(y("reserved")) with points pt 2 ps 1.6 * DOT lw 3 lc rgb pcolor(i) notitle, \
	CSV using (column("series") < 0 ? column(X) : NaN):(most):(0.0):(-0.03 * most) with vectors nohead lw 1.2 lc rgb INK notitle

LEGEND_AT = HEAD + TALL + 62
eval legend_area
# (a loop that never runs would still take a place in the legend)
BOUND_ENTRY = entry(BOUND > 0, 'with lines lw 2 dt 2 lc rgb INK title bound_title')
PLACE_ENTRY = entry(PLACE > 0, 'with lines lw 2 dt 3 lc rgb INK title "offline placement ".amount(PLACE, scale_of(PLACE))')
ROOM_ENTRY = entry(has_room, 'with lines lw 3 dt 1 lc rgb INK title room_title')
CARD_ENTRY = entry(has_card, 'with lines lw 2.5 dt 1 lc rgb SKY title card_title')
STEP_ENTRY = entry(STEPS, 'with points pt 1 ps DOT lw 1 lc rgb AXIS title "a step begins"')
plot NaN notitle, keyentry with boxes fs solid 1.0 noborder lc rgb AREA title "requested by the program", \
	keyentry with lines lw 1 lc rgb AXIS title "active (".letter(BASE).")", \
	for [i = 0:COUNT - 1] keyentry with linespoints lw 2.2 dt 1 pt ppoint(i) ps DOT lc rgb pcolor(i) title title_of(i) @BOUND_ENTRY @PLACE_ENTRY @ROOM_ENTRY @CARD_ENTRY @STEP_ENTRY
unset multiplot
