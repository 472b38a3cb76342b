# SPDX-License-Identifier: Apache-2.0
# Peak reserved per policy, stacked by cause, with the lower bound and the offline placement.
load ARG0[1:strlen(ARG0)-strlen("peak.gp")]."style.gp"
eval arguments

array DONE[512]
array PEAK[512]
bound = 0
place = 0
room = 0
card = 0
card_name = ""
note(i) = (DONE[int(i) + 1] = int(column("completed")), PEAK[int(i) + 1] = column("peak_reserved_bytes"), bound = column("lower_bound_bytes"), place = column("placement_bytes"), room = column("capacity_bytes"), card = column("card_bytes"), card_name = strcol("card"), 0)
eval read_names
eval each("note(column('rank'))")
bound = known(bound); place = known(place); room = known(room); card = known(card)
median = 0
failed = 0
do for [i = 1:COUNT] {
	below = sum [k = 1:COUNT] (PEAK[k] < PEAK[i])
	median = below <= COUNT / 2 && PEAK[i] > median ? PEAK[i] : median
	failed = failed || !DONE[i]
}
# a bar far longer than the others is cut, with an arrow; what is far: three times the median
far = COUNT > 2 ? 3 * median : 1e30
top = bound > place ? bound : place
do for [i = 1:COUNT] { top = PEAK[i] <= far && PEAK[i] > top ? PEAK[i] : top }
top = top > 0 ? top : MIB
near(v) = v > 0 && v < 1.2 * top
S = scale_of(top)
U = unit_of(top)
same = alike(bound, place, top)
bound_title = same ? both(bound, place, S) : "lower bound ".amount(bound, S)
place = same ? 0 : place
has_room = near(room)
has_card = near(card) && card != room

ROW = pitch(38)
NOTES = 20 * ((bound > 0) + (place > 0) + has_room + has_card)
# a key is no taller than what is drawn above it, else it gets another column, which is cut
body = ROW * COUNT + 12
body = body < 66 ? 66 : body
eval open(HEAD + NOTES + body + 66 + LEGEND_ROW * (3 + failed))
left = name_room(LONGEST)
eval across(left, W - 14)
eval down(HEAD + NOTES, HEAD + NOTES + body)
eval key_below(10, HEAD + NOTES + body + 62, 3 + failed)
set xlabel "peak reserved memory (".U.")" tc rgb INK
most = top / S * 1.6
set xrange [0:most]
set xtics step(most, 6)
eval name_rows
cut_at = top / S * 1.08
ends(v) = v > far ? cut_at : v / S
# a figure that a line would strike through begins behind the line
one_px = most / (W - 14 - left)
figure(i) = (PEAK[i] > far ? "→ " : "").amount(PEAK[i], S)
behind(x, w, line) = line > x - 4 * one_px && line < x + w ? line + 5 * one_px : x
begins(x, w) = behind(behind(x, w, has_card ? card / S : 0), w, has_room ? room / S : 0)
do for [i = 0:COUNT - 1] {
	set label i + 301 figure(i + 1) at first begins(ends(PEAK[i + 1]) + (DONE[i + 1] ? 6 : 13) * one_px, 8 * strlen(figure(i + 1)) * one_px), first -i left tc rgb INK
}
# lines across the bars, each with its name on a row above; from the right, and names to the left
# where there is room, so that no line goes through the name of another
array V[4] = [bound, place, has_card ? card : 0, has_room ? room : 0]
array TEXT[4] = [bound_title, "offline placement ".amount(place, S), card_name.": ".amount(card, S), "limit of this replay ".amount(room, S)]
array WIDTH[4] = [2, 2, 2.5, 3]
array DASH[4] = [2, 3, 1, 1]
array HUE[4] = [INK, INK, SKY, INK]
XPOS(v) = left + (W - 14 - left) * v / S / most
RIGHTMOST = "K = 1; do for [j = 2:4] { K = V[j] > V[K] ? j : K }"
do for [NOTE = 1:4] {
	eval RIGHTMOST
	if (V[K] > 0) {
		X_ = XPOS(V[K])
		LEFT_ = 7.2 * strlen(TEXT[K]) < X_ - 10
		set arrow NOTE from first V[K] / S, graph 0 to screen px(X_), py(HEAD + 20 * NOTE - 4) nohead lw WIDTH[K] dt DASH[K] lc rgb HUE[K] front
		set label 900 + NOTE TEXT[K] at screen px(X_ + (LEFT_ ? -5 : 5)), py(HEAD + 20 * NOTE - 10) left tc rgb INK
		if (LEFT_) { set label 900 + NOTE right }
		V[K] = 0
	}
}

upto(n) = (sum [k = 1:n] column(word(CAUSES, k))) / S
FAILED_KEY = entry(failed, 'with points pt 2 ps 1.3 * DOT lw 3 lc rgb AXIS title "out of memory"')
held(v) = v > cut_at ? cut_at : v
half = 0.34
plot for [k = 1:6] CSV using (held(upto(k))):(-column("rank")):(k == 1 ? 0 : held(upto(k - 1))):(held(upto(k))):(-column("rank") - half):(-column("rank") + half) with boxxyerror fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] notitle, \
	CSV using (held(upto(5))):(-column("rank")):(held(upto(4))):(held(upto(5))):(-column("rank") - half):(-column("rank") + half) with boxxyerror fs transparent pattern 5 noborder lc rgb HATCH notitle, \
	CSV using (column("completed") == 1 ? NaN : held(upto(6))):(-column("rank")) with points pt 2 ps 1.3 * DOT lw 3 lc rgb AXIS notitle, \
	@CAUSE_KEY @FAILED_KEY
