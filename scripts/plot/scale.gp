# SPDX-License-Identifier: Apache-2.0
# Peak memory of a program by its batch size or a length (EXTRA: what it is called): a curve for
# each policy, filled marks where it was recorded, and what a card has room for. CSV: scale.csv.
load ARG0[1:strlen(ARG0)-strlen("scale.gp")]."style.gp"
eval arguments
eval read_names

eval limits_of("column('reserved_most_bytes')")
top = STATS_max > MIB ? STATS_max : MIB
eval limits_of("column('room_bytes')")
ROOM = STATS_max
shown = ROOM > 0 && ROOM < 2.5 * top
top = shown && ROOM > top ? ROOM : top
eval limits_of("column('value')")
low = STATS_min > 0 ? STATS_min : 1
high = STATS_max > low ? STATS_max : low + 1
S = scale_of(top)

ROWS = COUNT + 1 + shown
PANEL = tall(300, ROWS)
eval open(HEAD + PANEL + 76 + LEGEND_ROW * ROWS)
eval left_title("peak memory (".unit_of(top).")", HEAD + PANEL / 2.0)
eval across(72, W - 24)
eval down(HEAD + 8, HEAD + PANEL)
eval key_below(10, HEAD + PANEL + 58, ROWS)
WIDE = high > 128 * low
if (WIDE) { set logscale x 2; set xrange [low / 1.1:high * 1.1] } else { set xrange [low - (high - low) / 40.0:high + (high - low) / 40.0] }
set yrange [0:top / S * 1.06]
set xlabel EXTRA.(WIDE ? " (log)" : "") tc rgb INK
of(i, v) = int(column("site")) == i ? v : NaN
mark(i, yes, v) = int(column("recorded")) == yes ? of(i, v) : NaN
plot CSV using (of(0, column("value"))):(column("requested_bytes") / S) with filledcurves x1 fs solid 1.0 noborder lc rgb AREA title "requested", \
	for [i = 0:COUNT - 1] CSV using (of(i, column("value"))):(column("reserved_bytes") / S):(column("reserved_most_bytes") / S) with filledcurves fs transparent solid 0.25 noborder lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (of(i, column("value"))):(column("reserved_bytes") / S) with lines lw 2 dt i + 1 lc rgb pcolor(i) title "reserved: ".short(NAME[i + 1], LEGEND_NAME - 6), \
	for [i = 0:COUNT - 1] CSV using (column("value")):(mark(i, 1, column("reserved_bytes") / S)) with points pt 7 ps 1.1 * DOT lc rgb pcolor(i) notitle, \
	for [i = 0:COUNT - 1] CSV using (column("value")):(mark(i, 0, column("reserved_bytes") / S)) with points pt 6 lw 1.5 ps 1.1 * DOT lc rgb pcolor(i) notitle, \
	(shown ? ROOM / S : NaN) with lines lw 1.6 dt 2 lc rgb AXIS title (shown ? "what the card has beside its context" : "")
