# SPDX-License-Identifier: Apache-2.0
# Memory over time: reserved of every policy, active and requested. EXTRA: s or events.
load ARG0[1:strlen(ARG0)-strlen("memory.gp")]."style.gp"
eval arguments

XCOL = EXTRA eq "s" ? "time_s" : "event"
array ENDED[512]
array END_X[512]
array END_Y[512]
array PEAK[512]
bound = 0
place = 0
room = 0
card = 0
card_name = ""
last_x = 0
steps = 0
array FIRST[512]
array LAST[512]
do for [i = 1:512] { PEAK[i] = 0; ENDED[i] = "" }
lines_ = -1
# what is the same in every row of a series is looked for in its first
begin(i) = (FIRST[i + 1] = lines_, bound = column("lower_bound_bytes"), place = column("placement_bytes"), room = column("capacity_bytes"), card = column("card_bytes"), card_name = strcol("card"))
row(i) = (series_ = i, x_ = column(XCOL), lines_ = lines_ + 1, i < 0) ? (steps = steps + 1, v_ = 0, state_ = "") : (ENDED[i + 1] eq "" ? begin(i) : "", v_ = column("reserved_max_bytes"), state_ = strcol("state"), LAST[i + 1] = lines_, PEAK[i + 1] = v_ > PEAK[i + 1] ? v_ : PEAK[i + 1], ENDED[i + 1] = state_, END_X[i + 1] = x_, END_Y[i + 1] = v_, last_x = x_ > last_x ? x_ : last_x, "")
eval read_names
# what is drawn, read once from columns found by name: many curves read it again
set table $rows separator comma
plot CSV using (row(int(column("series"))), series_):(x_):(column("requested_max_bytes")):(column("active_max_bytes")):(v_):(state_ eq "oom") with table
unset table
unset datafile columnheaders
bound = known(bound); place = known(place); room = known(room); card = known(card)
# Lines far above all others would press them flat: they leave the sheet, and the legend says
# where to. What is far: three times the median.
median = 0
do for [i = 1:COUNT] {
	below = sum [k = 1:COUNT] (PEAK[k] < PEAK[i])
	median = below <= COUNT / 2 && PEAK[i] > median ? PEAK[i] : median
}
far = COUNT > 2 ? 3 * median : 1e30
top = bound > place ? bound : place
clipped = 0
do for [i = 1:COUNT] {
	top = PEAK[i] <= far && PEAK[i] > top ? PEAK[i] : top
	clipped = clipped || PEAK[i] > far
}
top = top > 0 ? top : MIB
# what a card has is drawn where it is not far away, and said where it is
near(v) = v > 0 && v < 1.3 * top
high = top
if (near(room) && room > high) { high = room }
if (near(card) && card > high) { high = card }
S = scale_of(top)
U = unit_of(top)
oom(i) = ENDED[i + 1] eq "oom"
title_of(i) = letter(i)."  ".short(NAME[i + 1], LEGEND_NAME - 20).", ".amount(PEAK[i + 1], scale_of(PEAK[i + 1])).(oom(i) ? ", out of memory" : PEAK[i + 1] > far ? " (beyond)" : "")
LONGEST = 0
do for [i = 0:COUNT - 1] { LONGEST = strlen(title_of(i)) > LONGEST ? strlen(title_of(i)) : LONGEST }
same = alike(bound, place, top)
bound_title = same ? both(bound, place, scale_of(bound)) : "lower bound ".amount(bound, scale_of(bound))
place = same ? 0 : place
LONGEST = bound > 0 && strlen(bound_title) > LONGEST ? strlen(bound_title) : LONGEST
room_title = "limit of this replay ".amount(room, scale_of(room)).(near(room) ? "" : " (above)")
card_title = card_name.": ".amount(card, scale_of(card)).(near(card) ? "" : " (above)")
has_room = room > 0
has_card = card > 0 && card != room
LONGEST = has_card && strlen(card_title) > LONGEST ? strlen(card_title) : LONGEST
entries = COUNT + 2 + (bound > 0) + (place > 0) + has_room + has_card + (steps > 0)
rows = legend_rows(entries, LONGEST)
TALL = tall(280, rows)
eval sheet(560, HEAD + TALL + 72 + LEGEND_ROW * rows)
eval open_output
set multiplot
unset key
eval across(68, W - 30)
eval down(HEAD, HEAD + TALL)
eval left_title("reserved memory (".U.")", HEAD + TALL / 2)
set xlabel (EXTRA eq "s" ? "recorded time (s)" : "trace event (number)") tc rgb INK
most = high / S * (clipped ? 1.25 : 1.08)
set yrange [0:most]
set xrange [0:last_x > 0 ? last_x : 1]
set xtics step(last_x, 7)
y(c) = column(c) / S
base = 0
do for [i = 0:COUNT - 1] { if (oom(base)) { base = i } }
# lines across the sheet, their sizes in the legend
if (bound > 0) { set arrow 1 from graph 0, first bound / S to graph 1, first bound / S nohead lw 2 dt 2 lc rgb INK front }
if (place > 0) { set arrow 2 from graph 0, first place / S to graph 1, first place / S nohead lw 2 dt 3 lc rgb INK front }
if (has_room && near(room)) { set arrow 3 from graph 0, first room / S to graph 1, first room / S nohead lw 3 dt 1 lc rgb INK front }
if (has_card && near(card)) { set arrow 4 from graph 0, first card / S to graph 1, first card / S nohead lw 2.5 dt 1 lc rgb SKY front }
# letters where the curves end, moved apart
LABELS = COUNT
GAP = 15
do for [i = 1:COUNT] { v = END_Y[i] / S; Y[i] = HEAD + TALL * (1 - (v < most ? v / most : 1)) }
eval spread_labels
do for [i = 1:COUNT] {
	if (oom(i - 1)) {
		set label 100 + i letter(i - 1) at first END_X[i], first (END_Y[i] < high * 1.2 ? END_Y[i] : high * 1.2) / S left offset character 0.9, character 0.4 font FONT." Bold,13.5" tc rgb pcolor(i - 1) front
	} else {
		set label 100 + i letter(i - 1) at screen px(W - 26), py(Y[i]) left font FONT." Bold,13.5" tc rgb pcolor(i - 1) front
	}
}
# marks on the lines repeat what their colours say
stride = int((|$rows| - steps) / COUNT / 5) + 1
mark(i, row, v) = int(row) % stride == int(i * stride / COUNT) ? v : NaN

plot $rows every ::FIRST[base + 1]::LAST[base + 1] using 2:(y(3)) with fillsteps fs solid 1.0 noborder lc rgb AREA notitle, \
	$rows every ::FIRST[base + 1]::LAST[base + 1] using 2:(y(4)) with steps lw 1 lc rgb AXIS notitle, \
	for [i = 0:COUNT - 1] $rows every ::FIRST[i + 1]::LAST[i + 1] using 2:(y(5)) with steps lw 2.2 dt 1 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] $rows every ::FIRST[i + 1]::LAST[i + 1] using (mark(i, $0 + FIRST[i + 1], $2)):(y(5)) with points pt ppoint(i) ps 1 * DOT lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] $rows every ::LAST[i + 1]::LAST[i + 1] using ($6 == 1 ? $2 : NaN):(y(5)) with points pt 2 ps 1.6 * DOT lw 3 lc rgb pcolor(i) notitle, \
	$rows using ($1 < 0 ? $2 : NaN):(most):(0.0):(-0.03 * most) with vectors nohead lw 1.2 lc rgb INK notitle

LEGEND_AT = HEAD + TALL + 62
eval legend_area
# (a loop that never runs would still take a place in the legend)
BOUND_ENTRY = entry(bound > 0, 'with lines lw 2 dt 2 lc rgb INK title bound_title')
PLACE_ENTRY = entry(place > 0, 'with lines lw 2 dt 3 lc rgb INK title "offline placement ".amount(place, scale_of(place))')
ROOM_ENTRY = entry(has_room, 'with lines lw 3 dt 1 lc rgb INK title room_title')
CARD_ENTRY = entry(has_card, 'with lines lw 2.5 dt 1 lc rgb SKY title card_title')
STEP_ENTRY = entry(steps > 0, 'with points pt 1 ps DOT lw 1 lc rgb AXIS title "a step begins"')
plot NaN notitle, keyentry with boxes fs solid 1.0 noborder lc rgb AREA title "requested by the program", \
	keyentry with lines lw 1 lc rgb AXIS title "active (".letter(base).")", \
	for [i = 0:COUNT - 1] keyentry with linespoints lw 2.2 dt 1 pt ppoint(i) ps DOT lc rgb pcolor(i) title title_of(i) @BOUND_ENTRY @PLACE_ENTRY @ROOM_ENTRY @CARD_ENTRY @STEP_ENTRY
unset multiplot
