# SPDX-License-Identifier: Apache-2.0
# Bytes by call site over time. EXTRA: lines (over the run), step, part; or
# stack|UNIT|X|MOMENT|LIMIT|LINES|OTHER|LIVE|REFUSED: areas stacked over time in s or events, a
# moment at X with its name, a limit in bytes (0: none), how many of the last sites are lines, not
# areas (reserved memory), another moment at OTHER (below 0: none), and where a request was refused
# the bytes live there and its own.
# CSV: number of the site, its name, x (event, part of the run, or step), time_s, bytes, and
# upto_bytes: its bytes and those of all sites below it. All rows of a site together.
load ARG0[1:strlen(ARG0)-strlen("sites.gp")]."style.gp"
eval arguments

part(s, n) = n > 1 ? part(s[strstrt(s, "|") + 1:*], n - 1) : s[1:strstrt(s."|", "|") - 1]
kind = part(EXTRA, 1)
stack = kind eq "stack"
XCOL = stack && part(EXTRA, 2) eq "s" ? 4 : 3
AT = stack ? part(EXTRA, 3) + 0 : 0
LIMIT = stack ? part(EXTRA, 5) + 0.0 : 0
top_x = 0
top = 0
note(v) = (top = v > top ? v : top, top_x = column(XCOL) > top_x ? column(XCOL) : top_x, 0)
eval read_names
eval each("note(column(stack ? 'upto_bytes' : 'bytes'))")
LIVE = stack ? part(EXTRA, 8) + 0.0 : 0
REFUSED = stack ? part(EXTRA, 9) + 0.0 : 0
top = REFUSED > 0 && LIVE + REFUSED > top ? LIVE + REFUSED : top
AREAS = stack ? COUNT - part(EXTRA, 6) : 0
near = LIMIT > 0 && LIMIT < 1.3 * top
top = near && LIMIT > top ? LIMIT : top
top_x = top_x > 0 ? top_x : 1
S = scale_of(top)
# lines over the run: before and after, of reserved and of live memory
array HUE[8] = [BLUE, ORANGE, GREEN, PURPLE, "#7a5230", SKY, "#3d348b", VERMILLION]
hue(i) = i < 0 || stack && i >= AREAS ? AXIS : NAME[i + 1] eq "all others" ? AREA : HUE[int(kind eq "lines" ? i % 2 : i) % 8 + 1]
wide(i) = stack ? 2 : kind eq "lines" ? (i < 2 ? 3 : 1.2) : i == 0 ? 4 : 1.8

limit_title = "limit ".amount(LIMIT, scale_of(LIMIT)).(near ? "" : " (above)")
longest = LONGEST > LEGEND_NAME ? LEGEND_NAME : LIMIT > 0 && strlen(limit_title) > LONGEST ? strlen(limit_title) : LONGEST
rows = legend_rows(COUNT + (LIMIT > 0) + (REFUSED > 0), REFUSED > 0 && longest < 19 ? 19 : longest)
PANEL = tall(300, rows)
UP = HEAD + (stack ? 22 : 8)
eval open(UP + PANEL + 70 + LEGEND_ROW * rows)
set multiplot
eval left_title("memory (".unit_of(top).")", UP + PANEL / 2.0)
set label 1004 (XCOL == 4 ? "recorded time (s)" : stack ? "trace event (number)" : kind eq "lines" ? "part of the run (%)" : kind." (number)") at screen 0.5, py(UP + PANEL + 43) center tc rgb INK
set xrange [0:(top_last = stack ? 1.02 * top_x : top_x)]
set xtics step(top_x, 5)
eval across(72, W - 20)
eval down(UP, UP + PANEL)
set yrange [0:top > 0 ? top / S * 1.04 : 1]
set ytics step(top / S, 5)
set grid ytics lc rgb GRID lt 1 lw 1 back
unset key
if (near) { set arrow 1 from graph 0, first LIMIT / S to graph 1, first LIMIT / S nohead lw 3 dt 1 lc rgb INK front }
if (stack) {
	set arrow 2 from first AT, graph 0 to first AT, graph 1.03 nohead lw 1.6 dt 2 lc rgb INK front
	if (REFUSED > 0) { set arrow 4 from first AT, first LIVE / S to first AT, first (LIVE + REFUSED) / S nohead lw 4 lc rgb "#d81b60" front }
	OTHER = part(EXTRA, 7) + 0
	if (OTHER >= 0) { set arrow 3 from first OTHER, graph 0 to first OTHER, graph 1 nohead lw 1.6 dt 3 lc rgb INK front }
	set label 1005 part(EXTRA, 4) at screen px(72 + (W - 92) * AT / top_last), py(UP - 14) center tc rgb INK
	if (AT < 0.3 * top_x) { set label 1005 left }
	if (AT > 0.7 * top_x) { set label 1005 right }
}
of(i, v) = int(column(1)) == i ? v : NaN
mark(i, v) = !stack && int(column(0)) % 24 == int(i * 6) ? v : NaN
plot for [i = AREAS - 1:0:-1] CSV using (of(i, column(XCOL))):(column("upto_bytes") / S) with fillsteps fs solid 1.0 noborder lc rgb hue(i) notitle, \
	for [i = AREAS:COUNT - 1] CSV using (of(i, column(XCOL))):(column("bytes") / S) with steps lw wide(i) lc rgb hue(i) notitle, \
	for [i = AREAS:COUNT - 1] CSV using (mark(i, of(i, column(XCOL)))):(column("bytes") / S) with points pt ppoint(i) ps DOT lc rgb hue(i) notitle
LEGEND_AT = UP + PANEL + 64
eval legend_area
LIMIT_ENTRY = entry(LIMIT > 0, 'with lines lw 3 lc rgb INK title limit_title')
REFUSED_ENTRY = entry(REFUSED > 0, 'with lines lw 4 lc rgb "#d81b60" title "the refused request"')
LINE_ENTRIES = entry(AREAS < COUNT, 'for [i = AREAS:COUNT - 1] keyentry with linespoints lw wide(i) pt (stack ? 0 : ppoint(i)) ps DOT lc rgb hue(i) title cut(NAME[i + 1], LEGEND_NAME)')
AREA_ENTRIES = entry(AREAS > 0, 'for [i = AREAS - 1:0:-1] keyentry with boxes fs solid 1.0 noborder lc rgb hue(i) title cut(NAME[i + 1], LEGEND_NAME)')
plot NaN notitle @LIMIT_ENTRY @REFUSED_ENTRY @LINE_ENTRIES @AREA_ENTRIES
unset multiplot
