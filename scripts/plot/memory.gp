# SPDX-License-Identifier: Apache-2.0
# Memory over time: reserved of every policy, active and requested. EXTRA: s or events.
load ARG0[1:strlen(ARG0)-strlen("memory.gp")]."style.gp"
eval arguments
eval measure_head

XCOL = EXTRA eq "s" ? "time_s" : "event"
array ENDED[256]
array END_X[256]
array END_Y[256]
bound = 0
place = 0
note_end(i, s, xx, yy) = (ENDED[int(i) + 1] = s, END_X[int(i) + 1] = xx, END_Y[int(i) + 1] = yy, bound = column("lower_bound_bytes"), place = column("placement_bytes"), 0)
eval read_names
set table $ends
plot CSV using (note_end(column("series"), strcol("state"), column(XCOL), column("reserved_max_bytes"))) with table
unset table
place = place == place ? place : 0
array PEAK[256]
do for [i = 1:COUNT] { PEAK[i] = 0 }
note_peak(i, v) = (PEAK[i + 1] = v > PEAK[i + 1] ? v : PEAK[i + 1], 0)
set table $peaks
plot CSV using (note_peak(int(column("series")), column("reserved_max_bytes"))) with table
unset table
# Lines far above all others would press them flat: they leave the sheet, and the legend says
# where to. What is far: three times the median.
median = 0
do for [i = 1:COUNT] {
	below = sum [k = 1:COUNT] (PEAK[k] < PEAK[i])
	median = below <= COUNT / 2 && PEAK[i] > median ? PEAK[i] : median
}
far = COUNT > 2 ? 3 * median : 1e30
top = 0
clipped = 0
do for [i = 1:COUNT] {
	top = PEAK[i] <= far && PEAK[i] > top ? PEAK[i] : top
	clipped = clipped || PEAK[i] > far
}
top = top > 0 ? top : MIB
stats CSV using (column("reserved_max_bytes")) nooutput
S = scale_of(top)
U = unit_of(top)
beyond(i) = PEAK[i + 1] > far ? ", up to ".amount(PEAK[i + 1], scale_of(PEAK[i + 1])) : ""
oom(i) = ENDED[i + 1] eq "oom"
more(i) = (oom(i) ? " (out of memory)" : "").beyond(i)
title_of(i) = cut(NAME[i + 1], LEGEND_NAME - strlen(more(i))).more(i)
do for [i = 0:COUNT - 1] { LONGEST = strlen(title_of(i)) > LONGEST ? strlen(title_of(i)) : LONGEST }
LONGEST = LONGEST > LEGEND_NAME ? LEGEND_NAME : LONGEST

same = alike(bound, place, top)
bound_title = same ? both(bound, place, scale_of(bound)) : "lower bound ".amount(bound, scale_of(bound))
place = same ? 0 : place
LONGEST = bound > 0 && strlen(bound_title) > LONGEST ? strlen(bound_title) : LONGEST
rows = legend_rows(COUNT + 2 + (bound > 0) + (place > 0), LONGEST)
eval sheet(900, HEAD + 350 + 74 + 22 * rows)
eval open_output
eval head
set lmargin at screen px(88)
set rmargin at screen px(W - 24)
set tmargin at screen py(HEAD)
set bmargin at screen py(HEAD + 350)
set key at screen px(20), py(HEAD + 350 + 66) left top Left reverse vertical maxrows rows samplen 3.2 spacing 1.02
eval left_title("reserved memory (".U.")", HEAD + 175)
set xlabel (EXTRA eq "s" ? "recorded time (s)" : "trace event (number)") tc rgb INK
if (clipped || STATS_max <= 0) { set yrange [0:top / S * 1.25] } else { set yrange [0:*] }
most = bound > place ? bound : place
if (!clipped && most > STATS_max) { set yrange [0:most / S * 1.08] }
set xrange [0:*] noextend
y(c) = column(c) / S
of(i, v) = column("series") == i ? v : NaN
base = 0
do for [i = 0:COUNT - 1] { if (oom(base)) { base = i } }
# what is possible: lines across the sheet, their sizes in the legend
if (bound > 0) { set arrow 1 from graph 0, first bound / S to graph 1, first bound / S nohead lw 2 dt 2 lc rgb INK front }
if (place > 0) { set arrow 2 from graph 0, first place / S to graph 1, first place / S nohead lw 2 dt 3 lc rgb INK front }
# (a loop that never runs would still take a place in the legend)
BOUND_ENTRY = bound > 0 ? ', keyentry with lines lw 2 dt 2 lc rgb INK title bound_title' : ''
PLACE_ENTRY = place > 0 ? ', keyentry with lines lw 2 dt 3 lc rgb INK title "offline placement ".amount(place, scale_of(place))' : ''
# more policies than colours: marks on the lines tell them apart
marked = COUNT > 7
stride = STATS_records / COUNT / 7 + 1
mark(i, row, v) = marked && int(row) % stride == int(i * stride / COUNT) ? of(i, v) : NaN

plot CSV using (of(base, column(XCOL))):(y("requested_max_bytes")) with fillsteps fs solid 1.0 noborder lc rgb AREA title "requested by the program", \
	CSV using (of(base, column(XCOL))):(y("active_max_bytes")) with steps lw 1 lc rgb AXIS title "active (".cut(NAME[base + 1], 40).")", \
	for [i = 0:COUNT - 1] CSV using (of(i, column(XCOL))):(y("reserved_max_bytes")) with steps lw 2.2 dt 1 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (mark(i, column(0), column(XCOL))):(y("reserved_max_bytes")) with points pt ppoint(i) ps 1 * DOT lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (strcol("state") eq "oom" ? of(i, column(XCOL)) : NaN):(y("reserved_max_bytes")) with points pt 2 ps 1.6 * DOT lw 3 lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] keyentry with linespoints lw 2.2 dt 1 pt ppoint(i) ps (marked ? DOT : 0) lc rgb pcolor(i) title title_of(i) @BOUND_ENTRY @PLACE_ENTRY
