# SPDX-License-Identifier: Apache-2.0
# Memory over the events of a training on a card: predicted from its recording (lines), and measured (marks).
# CSV: rows of series.csv of one program; EXTRA: rows of samples.csv of the same, both with the number of the policy
# in the first column.
load ARG0[1:strlen(ARG0)-strlen("live.gp")]."style.gp"
eval arguments
eval sheet(900, 520)
set output OUTPUT
set title TITLE."\n".SUBTITLE
set xlabel "allocations and frees, in thousands"
set ylabel "reserved, GiB"
set yrange [0:*]
set grid ytics lc rgb GRID
set key outside below horizontal
array NAMES[4] = ["PyTorch's default", "expandable segments", "vmm, through the library", "tlsf, through the library"]
array INKS[4] = [BLUE, ORANGE, GREEN, PURPLE]
plot CSV using ($3 / 1e3):($1 == 1 ? $4 / 2.0**30 : NaN) with filledcurves y1=0 lc rgb AREA title "live", \
	for [i=1:4] CSV using ($3 / 1e3):($1 == i ? $5 / 2.0**30 : NaN) with steps lc rgb INKS[i] lw 2 title NAMES[i].", predicted", \
	for [i=1:4] EXTRA using ($4 / 1e3):($1 == i ? $6 / 2.0**30 : NaN) every 8 with points lc rgb INKS[i] pt 4 + 2 * i ps 0.8 title "measured"
