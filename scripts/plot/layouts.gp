# SPDX-License-Identifier: Apache-2.0
# A map of layouts: a name's values go to the right, the others down; the colour of a cell is the memory that the layout needs,
# as a part of what the card has; its text says the same. EXTRA: the name that goes to the right.
load ARG0[1:strlen(ARG0)-strlen("layouts.gp")]."style.gp"
eval arguments

array COLUMN[4096]
array ROW[64]
COLS = 1
ROWS = 1
WIDE = 3
note(x, y, column, row) = (COLUMN[x + 1] = column, ROW[y + 1] = row, COLS = x + 1 > COLS ? x + 1 : COLS, ROWS = y + 1 > ROWS ? y + 1 : ROWS, WIDE = strlen(row) > WIDE ? strlen(row) : WIDE, 0)
set table $names
plot CSV using (note(int(column("x")), int(column("y")), strcol("column"), strcol("row"))) with table
unset table

# long names take lines of their own above their row
LEFT = WIDE * 8.1 + 26
ABOVE = LEFT > 220
LEFT = ABOVE ? 20 : LEFT
W_ = 560 - LEFT - 16
CELL = W_ / COLS
SHOW = CELL >= 26
STEP = ABOVE ? 46 : 30
body = STEP * ROWS + 4
eval open(HEAD + body + 116)
eval across(LEFT, W - 16)
eval down(HEAD, HEAD + body)
set xlabel EXTRA tc rgb INK
set xrange [-0.5:COLS - 0.5]
set yrange [ROWS - 0.5:-0.5]
unset ytics
unset grid
unset border
SKIP = int(ceil(COLS * 1.0 / (W_ / 46)))
set xtics scale 0
set xtics ("" 0)
do for [i = 1:COLS] { if ((i - 1) % SKIP == 0) { set xtics add (COLUMN[i] i - 1) } }
do for [i = 1:ROWS] {
	if (ABOVE) { set label 1100 + i ROW[i] at graph 0, first i - 1 - 0.32 left tc rgb INK } else { set label 1100 + i ROW[i] at graph 0, first i - 1 right offset character -0.7, 0 tc rgb INK }
}
LOW_ = 0.46
# in words as in colours: free, nearly full, too much, unknown; the ink of the words stays dark on dark pages, as their cells stay light
state = '(strcol("answer") eq "fits" ? (column("need_ratio") == column("need_ratio") ? (column("need_ratio") > 0.85 ? 2 : 1) : 0) : strcol("answer") eq "tight" ? 3 : strcol("answer") eq "does not fit" ? 4 : 5)'
array HUE[6] = ["#cdeadf", "#9fd6c2", "#f3d08a", "#ef8a7a", "#cc6655", "#b4bac0"]
mark(s, v) = v == v ? sprintf("%d", int(100 * v + 0.5)) : s == 0 ? "+" : s == 4 ? "–" : s == 5 ? "x" : ""
eval key_below(12, HEAD + body + 48, 3)
plot for [k = 0:5] CSV using ((@state) == k ? column("x") : NaN):(column("y")):(column("x") - 0.48):(column("x") + 0.48):(column("y") - (ABOVE ? 0.1 : LOW_)):(column("y") + LOW_) with boxxyerror fs solid 1.0 noborder lc rgb HUE[k + 1] notitle, \
	CSV using (column("x")):(column("y") + (ABOVE ? 0.18 : 0)):(SHOW ? mark((@state), column("need_ratio")) : "") with labels center tc rgb "#06251b" font SMALL notitle, \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[2] title "fits (% of the room)", \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[3] title "fits, over 85 %", \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[1] title "assumed to fit (+)", \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[4] title "tight: the margin is not free", \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[5] title "does not fit (–: assumed)", \
	keyentry with boxes fs solid 1.0 noborder lc rgb HUE[6] title "failed or unknown (x)"
