# SPDX-License-Identifier: Apache-2.0
# Peak reserved memory of programs on a card, and recorded without one. CSV: that of nogpu_compare.py, in the order of the rows.
load ARG0[1:strlen(ARG0)-strlen("nogpu.gp")]."style.gp"
eval arguments
eval measure_head
stats CSV using (column("card_default_bytes")) nooutput
N = STATS_records
PITCH = 17
eval sheet(560, HEAD + N * PITCH + 112)
eval open_output
eval head
set lmargin at screen px(176)
set rmargin at screen px(W - 24)
set tmargin at screen py(HEAD + 8)
set bmargin at screen py(HEAD + 8 + N * PITCH)
GB(name) = column(name) / 2.0**30
set logscale x 2
set yrange [N - 0.4:-0.6] noextend
set xlabel "peak reserved, PyTorch's default settings (GiB)"
set grid xtics noytics lc rgb GRID
set key at screen px(12), py(H - 26) left top Left reverse horizontal samplen 1 font FONT.",13.3"
plot CSV using (GB("card_default_bytes")):0:yticlabels(1) with points pt 6 ps 1.5 * DOT lw 1.6 lc rgb BLUE title "recorded on an H200", \
	CSV using (GB("own_default_bytes")):0 with points pt 7 ps 0.7 * DOT lc rgb VERMILLION title "recorded without a GPU"
