# SPDX-License-Identifier: Apache-2.0
# Style and arguments of all charts (gnuplot >= 5.4). A script begins with
#
#	load ARG0[1:strlen(ARG0)-strlen("name.gp")]."style.gp"
#	eval arguments				and the room that title and subtitle take: HEAD
#	eval read_names					if there is a policy in each row: NAME[], COUNT, LONGEST
#	eval open(HEAD + the rest in pixels)		the sheet, with title and subtitle
#
# and is called as
#
#	gnuplot -c scripts/plot/NAME.gp CSV OUTPUT svg|png|pdf TITLE SUBTITLE EXTRA
#
# by cufrag, which knows EXTRA. For a paper, copy this folder to DIR/plot, change FONT, INCH and
# HEADED below, and run cufrag with FRAG_SHARE=DIR: all charts of --out are drawn that way.
#
# Statistics, limits and rows of curves are computed in C: as columns of the CSV, or as assignments in EXTRA
# (src/answer/draw/plot_values.h), which a script runs with `eval EXTRA`. What is here to draw with:
#
#	INK AXIS GRID AREA MID, BLUE …			inks
#	pcolor(i) ppoint(i) letter(i) short(NAME, n)	policy number i: its colour, mark, letter; a name of n letters
#	CAUSES CAUSE_NAME CAUSE_COLOR @CAUSE_KEY	causes of loss, in the order of stacking
#	px(x) py(y) across() down() left_title()	places in pixels of the sheet, from its left and its top
#	scale_of(b) unit_of(b) amount(b, scale)		bytes as MiB or GiB
#	step(range, n) decades(low, high, n)		round ticks
#	legend_rows(n, longest) tall(px, rows) entry()	a legend below the plot, and the height of a plot above it
#	legend_area spread_labels			(with eval) the legend's plot; labels moved apart
#
# A sheet is 560 pixels wide and no letter is smaller than 13.3 of them: on a telephone of 400
# pixels that is 9, and a report takes two sheets side by side.
#
# One colour, one meaning, in all charts: policies have hues of Okabe and Ito's set, causes of
# loss have grey and the reds, cards the blue of the sky, and everything else is neutral. What a
# colour says is said again by a mark, a letter or hatching. report.html restyles exactly the inks
# below for dark screens, so scripts use these names and no other black or grey.

# (not here: while a file is loaded, ARG1… are its own)
# All charts in one PDF: a script sets these itself, and ONE_PDF, and calls one after the other.
arguments = 'if (!exists("ONE_PDF")) { CSV = ARG1; OUTPUT = ARG2; FORMAT = ARG3; TITLE = ARG4; SUBTITLE = ARG5; EXTRA = ARG6 }; eval measure_head'
open_output = 'if (!exists("ONE_PDF")) { set output OUTPUT }; eval head'

INK = "#222222"		# text
AXIS = "#444444"	# axes and reference lines; the first of two neutral series
GRID = "#dddddd"
AREA = "#b4bac0"	# memory in use
MID = "#8f979e"		# the second of two neutral series

BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#009e73"
ORANGE = "#e69f00"
PURPLE = "#cc79a7"
SKY = "#56b4e9"

# policies: number i (from 0) has a colour, a mark and a letter everywhere
array POLICY_COLOR[12] = [BLUE, ORANGE, GREEN, PURPLE, "#7a5230", "#3d348b", "#d81b60", "#8a9a00", "#00a3b4", "#9b59b6", "#ef8a7a", "#6dbf2e"]
array POLICY_POINT[7] = [7, 5, 9, 11, 13, 15, 4]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
pcolor(i) = POLICY_COLOR[int(i) % 12 + 1]
ppoint(i) = POLICY_POINT[(int(i) + int(i) / 7) % 7 + 1]
letter(i) = i < 26 ? LETTERS[int(i) + 1:int(i) + 1] : sprintf("%d", int(i) + 1)

# causes, in the order of stacking; free and releasable memory is hatched over its colour
CAUSES = "requested_bytes rounding_bytes waiting_bytes non_releasable_bytes releasable_bytes other_bytes"
array CAUSE_NAME[6] = ["requested", "rounding", "waiting for a stream", "free, non-releasable", "free, releasable", "driver rounding"]
array CAUSE_COLOR[6] = [AREA, "#6b2c00", "#a8887a", VERMILLION, "#fbe3d3", "#59626d"]
HATCHED = 5
HATCH = "#b06030"
# their legend (use as the last element of a plot: @CAUSE_KEY)
CAUSE_KEY = 'for [k = 1:4] keyentry with boxes fs solid 1.0 noborder lc rgb CAUSE_COLOR[k] title CAUSE_NAME[k], '.\
	'keyentry with boxes fs pattern 5 noborder lc rgb HATCH title CAUSE_NAME[5], keyentry with boxes fs solid 1.0 noborder lc rgb CAUSE_COLOR[6] title CAUSE_NAME[6]'

set datafile separator comma
set datafile columnheaders
set encoding utf8
set micro

# Sets the terminal for a sheet of w x h pixels and W, H, and FOOT, where the sheet ends (use: eval
# open(h)). Font sizes in scripts are pixels of the sheet: SVG takes them as they are, PNG is drawn
# 1.75 times as large with 0.75 point to the pixel, PDF has 110 pixels to the inch.
FONT = "sans-serif"
SHEET = 560	# pixels: less cuts labels off
INCH = 110	# pixels of a PDF, which 160 make as wide as a column of a paper
HEADED = 1	# 0: without title and subtitle
SMALL = FONT.",13.3"
# points are drawn larger by the SVG terminal (use: ps 1.2 * DOT)
set_dot = "DOT = FORMAT eq 'svg' ? 0.6 : 1.0"
# In one PDF a sheet is the upper part of a page of A4, 73 pixels to the inch.
PAGE_W = 600
PAGE_H = 848
sheet(w, h) = exists("ONE_PDF") ? sprintf("W=%d; H=%d; FOOT=%d", PAGE_W, h > PAGE_H ? h : PAGE_H, h) : sprintf("W=%d; H=%d; FOOT=%d; ", w, h, h).( \
	FORMAT eq "png" ? sprintf("set term pngcairo size %d,%d fontscale 1.3125 linewidth 1.75 pointscale 1.75", int(1.75 * w), int(1.75 * h)) : \
	FORMAT eq "pdf" ? sprintf("set term pdfcairo size %.3fin,%.3fin fontscale %.3f linewidth %.2f pointscale %.2f", w / (1.0 * INCH), h / (1.0 * INCH), 55.0 / INCH, 88.0 / INCH, 55.0 / INCH) : \
	sprintf("set term svg size %d,%d", w, h)). \
	" font '".FONT.",13.5' noenhanced rounded background '#ffffff'"
open(h) = sheet(SHEET, h)."; ".open_output

# pixels to screen coordinates; y counts from the top
px(x) = (x) / (1.0 * W)
py(y) = 1.0 - (y) / (1.0 * H)
# where a plot stands, in pixels from the left and from the top (use: eval across(68, W - 14), eval down(HEAD, HEAD + TALL))
across(from, to) = sprintf("set lmargin at screen %.17g; set rmargin at screen %.17g", px(from), px(to))
down(from, to) = sprintf("set tmargin at screen %.17g; set bmargin at screen %.17g", py(from), py(to))
# the legend below a plot, of so many rows (use: eval key_below(12, HEAD + body + 62, 2))
key_below(x, y, rows) = sprintf("set key at screen %.17g, %.17g left top Left reverse vertical maxrows %d ", px(x), py(y), rows).\
	"samplen 2 spacing 1.05 font '".SMALL."'"
# calls a function for each row of the CSV (use: eval each("note(column('rank'))"))
each(call) = "set table $notes; plot CSV using (".call.") with table; unset table"

# STATS_min and STATS_max, 0 where there is no number (use: eval limits_of("column(3)"))
limits_of(what) = "stats CSV using (".what.") nooutput; if (!exists('STATS_max')) { STATS_min = 0; STATS_max = 0 }"
# a number, 0 for a field that is empty
known(v) = v == v ? v : 0
# an entry of the legend that is not always there
entry(there, what) = there ? (what[1:3] eq "for" ? ", " : ", keyentry ").what : ""

# lines of a text
lines(s) = strstrt(s, "\n") ? 1 + lines(s[strstrt(s, "\n") + 1:*]) : strlen(s) > 0
# height of title and subtitle, and DOT (again where a script changes them)
measure_head = "eval set_dot; if (!HEADED) { TITLE = ''; SUBTITLE = '' }; SUB_AT = 10 + 20 * lines(TITLE) + 11; HEAD = SUB_AT + 17 * lines(SUBTITLE) + 10"
# title and subtitle
head = "set label 1001 TITLE at screen px(12), py(20) left font '".FONT." Bold,15.5' tc rgb INK; set label 1002 SUBTITLE at screen px(12), py(SUB_AT + 4) left font '".FONT.",13.3' tc rgb INK"

# What the left axis shows, at a place of its own: gnuplot would guess how wide the figures beside
# it come out. mid: pixels from the top (use: eval left_title("memory (GiB)", mid)).
left_title(text, mid) = sprintf("set label 1003 \"%s\" at screen px(12), py(%d) center rotate by 90 tc rgb INK font FONT.',13.5'", text, int(mid))

set border 3 lc rgb AXIS
set tics nomirror out scale 0.6 textcolor rgb INK
set grid ytics lc rgb GRID lt 1 lw 1
set key textcolor rgb INK
set xlabel offset 0, 0.5
set xtics offset 0, 0.2

# "9.65 GiB"
GIB = 1073741824.0
MIB = 1048576.0
unit_of(bytes) = bytes >= 4 * GIB ? "GiB" : "MiB"
scale_of(bytes) = bytes >= 4 * GIB ? GIB : MIB
number(bytes, scale) = scale == GIB ? sprintf("%.2f", bytes / GIB) : sprintf("%.0f", bytes / MIB)
amount(bytes, scale) = scale == GIB ? sprintf("%.2f GiB", bytes / GIB) : sprintf("%.0f MiB", bytes / MIB)

# The lower bound and the offline placement; two lines that cannot be told apart on a sheet
# that ends at `top` are drawn as one (0 = there is none).
alike(bound, place, top) = bound > 0 && place > 0 && place < bound + 0.006 * top
both(bound, place, scale) = "bound ".number(bound, scale).", offline placement ".amount(place, scale)

# Names of policies: NAME[i + 1], i being the number in the first column, the name in the
# second (use: eval read_names). gnuplot cuts quoted fields at their commas; hence a
# second pass takes what is between the quotes, where a line has the form 3,"a,b",…
first(line) = int(line[1:strlen(line) - 1])
quoted(line) = strstrt(line, ",") == strlen(line)
read_names = "set table $names; ".\
	"plot CSV using (remember(int(column(1)), strcol(2))) with table; ".\
	"set datafile separator '\"'; unset datafile columnheaders; ".\
	"plot CSV skip 1 using (quoted(strcol(1)) ? remember(first(strcol(1)), strcol(2)) : 0) with table; ".\
	"unset table; set datafile separator comma; set datafile columnheaders"
NAME_WIDTH = 22
cut(s, n) = strlen(s) <= n ? s : s[1:n - 1]."…"
# what names have in common is the first to go
drop(s, what) = (drop_ = strstrt(s, what), drop_ ? s[1:drop_ - 1].s[drop_ + strlen(what):*] : s)
less(s, n) = strlen(s) <= n ? s : cut(drop(s, "_divisions"), n)
short(s, n) = strlen(s) <= n ? s : less("…".drop(drop(s, "pytorch:"), "_segments:True"), n)
# lines of NAME_WIDTH, broken behind a sign where there is one
sign_(s, n) = n < 6 ? 0 : strstrt(":,_", s[n:n]) ? n : sign_(s, n - 1)
break_(s) = (at_ = sign_(s, NAME_WIDTH), at_ > 0 ? at_ : NAME_WIDTH)
fold_(s) = strlen(s) <= NAME_WIDTH ? s : s[1:break_(s)]."\n".fold_(s[break_(s) + 1:*])
fold(s) = fold_(strlen(s) > 2 * NAME_WIDTH ? short(s, 54) : s)
folded(s) = lines(fold(s)) - 1
# a row for each name, the first on top: its name to the left of the plot (use: eval name_rows)
name_rows = "set yrange [-COUNT + 0.4:0.6]; unset ytics; set grid noytics xtics; set border 1; do for [i_ = 1:COUNT] { ".\
	"set label i_ fold(NAME[i_]) at graph 0, first 1 - i_ right offset character -0.7, character 0.5 * folded(NAME[i_]) tc rgb INK }"
# pixels for names on the left
name_room(longest) = 22 + 8.1 * (longest < NAME_WIDTH ? longest : NAME_WIDTH)
array NAME[512]
do for [i = 1:512] { NAME[i] = "" }
COUNT = 0
LONGEST = 0
remember(i, s) = i < 0 ? 0 : (NAME[i + 1] = s, COUNT = i + 1 > COUNT ? i + 1 : COUNT, LONGEST = strlen(s) > LONGEST ? strlen(s) : LONGEST, 0)

# the head is drawn with the first plot of a sheet (use: eval headed, behind it)
headed = "unset label 1001; unset label 1002; unset label 1003; unset label 1004"

# Legend below the plot: rows for n entries, the longest of `longest` letters.
LEGEND_NAME = int(SHEET / 8.0 - 10)
legend_cols(n, longest) = (cols_ = int((SHEET - 24) / (longest * 8.1 + 62)), cols_ < 1 ? 1 : cols_ > n ? n : cols_)
legend_rows(n, longest) = int(ceil(n / (1.0 * legend_cols(n, longest))))
LEGEND_ROW = 21
# height of a plot: never less than a third more than its legend
tall(least, rows) = 1.35 * LEGEND_ROW * rows > least ? 1.35 * LEGEND_ROW * rows : least
# rows of names that take two or three lines are further apart
pitch(row) = row + 10 * (LONGEST > NAME_WIDTH) + 12 * (LONGEST > 2 * NAME_WIDTH)

# The legend as a plot of its own below the others, since gnuplot makes no legend higher than the
# plot it belongs to (use: LEGEND_AT = pixels; eval legend_area; plot NaN notitle, keyentry …)
legend_area = "unset label; unset arrow; unset border; unset tics; unset grid; unset logscale; unset xlabel; unset ylabel; ".\
	"set lmargin at screen 0; set rmargin at screen 1; set tmargin at screen py(LEGEND_AT); set bmargin at screen 0; ".\
	"set xrange [0:1]; set yrange [0:1]; set key at screen px(10), py(LEGEND_AT) left top Left reverse vertical maxrows rows samplen 2.6 spacing 1.05 font '".FONT.",13.3'"

# Places for labels beside marks at heights Y[1..n] (pixels): none nearer to the next than `gap`
# (use: eval spread_labels; reads LABELS, Y, GAP and the array ORDER, writes Y)
array Y[512]
array ORDER[512]
spread_labels = "do for [a_ = 1:LABELS] { ORDER[a_] = a_ }; ".\
	"do for [a_ = 2:LABELS] { do for [b_ = a_:2:-1] { if (Y[ORDER[b_]] < Y[ORDER[b_ - 1]]) { c_ = ORDER[b_]; ORDER[b_] = ORDER[b_ - 1]; ORDER[b_ - 1] = c_ } } }; ".\
	"do for [k_ = 1:12] { do for [a_ = 2:LABELS] { d_ = GAP - (Y[ORDER[a_]] - Y[ORDER[a_ - 1]]); if (d_ > 0) { Y[ORDER[a_]] = Y[ORDER[a_]] + d_ / 2; Y[ORDER[a_ - 1]] = Y[ORDER[a_ - 1]] - d_ / 2 } } }"

# Ticks of a logarithmic axis: every decade, or every other where there are many.
decades(low, high, many) = ceil(log10(high)) - floor(log10(low)) > many ? 100 : 10

# A round step that divides a range into about n parts.
step_(r) = (mant_ = r / 10 ** floor(log10(r)), 10 ** floor(log10(r)) * (mant_ < 1.5 ? 1 : mant_ < 3.5 ? 2 : mant_ < 7.5 ? 5 : 10))
step(range, n) = range > 0 ? step_(range / (1.0 * n)) : 1
