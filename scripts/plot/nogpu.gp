# SPDX-License-Identifier: Apache-2.0
# How far the peak reserved memory of programs recorded without a GPU is off, beside their recordings of a card: a mark
# a program and settings; those off by more than a half of 1 % have names. CSV: that of nogpu_compare.py.
load ARG0[1:strlen(ARG0)-strlen("nogpu.gp")]."style.gp"
eval arguments
NEAR = 0.5	# %, of which results/nogpu says how many are within
eval sheet(560, HEAD + 384)
eval open_output
GB(name) = column(name) / GIB
off(kind) = 100.0 * (column("own_".kind."_bytes") / column("card_".kind."_bytes") - 1)
named(kind) = abs(off(kind)) > NEAR ? off(kind) : NaN
eval across(72, W - 24)
eval down(HEAD + 8, H - 120)
set logscale x 2
set xrange [0.0625:64] noextend
set xtics ("64 MiB" 0.0625, "256 MiB" 0.25, "1 GiB" 1, "4 GiB" 4, "16 GiB" 16, "64 GiB" 64)
set yrange [-10:5] noextend
set ytics -10, 2.5, 5 format "%+.1f %%"
set ytics add ("0" 0)
set grid ytics noxtics
set object 1 rectangle from graph 0, first -NEAR to graph 1, first NEAR fc rgb GRID fs solid 1.0 noborder behind
set xlabel "peak reserved on the card"
set key at screen px(12), py(H - 56) left top Left reverse horizontal maxcols 2 samplen 1 font FONT.",13.3"
plot CSV using (GB("card_expandable_bytes")):(off("expandable")) with points pt 4 ps 1.5 * DOT lw 1.4 lc rgb VERMILLION title "expandable segments", \
	CSV using (GB("card_default_bytes")):(off("default")) with points pt 7 ps 0.9 * DOT lc rgb BLUE title "default settings", keyentry with boxes fs solid 1.0 noborder lc rgb GRID title "within 0.5 %", \
	CSV using (GB("card_expandable_bytes")):(named("expandable")):1 with labels right offset -1.2, 0 font FONT.",13.3" tc rgb INK notitle, \
	CSV using (GB("card_default_bytes")):(named("default")):1 with labels left offset 0.9, 0 font FONT.",13.3" tc rgb INK notitle
