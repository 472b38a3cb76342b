# SPDX-License-Identifier: Apache-2.0
# The paged cache of a serving engine over time: above how full it is, below how many requests run
# and wait. CSV: kvcache.csv.
load ARG0[1:strlen(ARG0)-strlen("kvcache.gp")]."style.gp"
eval arguments
PANEL = 190
eval open(HEAD + 2 * PANEL + 140)
eval limits_of("column('begin_us')")
END = STATS_max > 0 ? STATS_max / 1e6 : 1
eval across(72, W - 24)
set xrange [0:END]
set multiplot
eval left_title("cache in use (%)", HEAD + PANEL / 2.0)
eval down(HEAD + 8, HEAD + PANEL)
set format x ""
set yrange [0:104]
plot CSV using (column("begin_us") / 1e6):(column("used_ratio") * 100) with filledcurves x1 fs solid 1.0 noborder lc rgb AREA notitle, \
	CSV using (column("preemptions_count") > 0 ? column("begin_us") / 1e6 : NaN):(102) with points pt 11 ps 0.8 lc rgb VERMILLION notitle
unset label
eval left_title("requests", HEAD + 1.5 * PANEL + 16)
eval down(HEAD + PANEL + 20, HEAD + 2 * PANEL + 20)
set format x "%g"
set yrange [0:*]
set xlabel "seconds" tc rgb INK
eval key_below(10, HEAD + 2 * PANEL + 74, 3)
plot CSV using (column("begin_us") / 1e6):(column("running_count")) with steps lw 2 lc rgb BLUE title "running", \
	CSV using (column("begin_us") / 1e6):(column("waiting_count")) with steps lw 2 dt 2 lc rgb ORANGE title "waiting", \
	keyentry with points pt 11 ps 0.8 lc rgb VERMILLION title "preemption"
unset multiplot
