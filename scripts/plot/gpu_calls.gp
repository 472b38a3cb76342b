# SPDX-License-Identifier: Apache-2.0
# Median latency of driver calls by size. CSV: calls.csv of cufrag bench. EXTRA: calls, separated by blanks.
load ARG0[1:strlen(ARG0)-strlen("gpu_calls.gp")]."style.gp"
eval arguments
eval sheet(900, 520)
set output OUTPUT
set title TITLE."\n".SUBTITLE
set logscale x 2
set logscale y 10
set xlabel "size of the call (MiB)"
set ylabel "median (microseconds)"
set datafile missing NaN
set grid ytics lc rgb GRID
set key outside right
mib(b) = b / 1048576.0
row(k, i) = strcol("call") eq word(EXTRA, i) && column("handles") == 1 && column("bytes") >= 2097152
plot for [i=1:words(EXTRA)] CSV using (mib(column("bytes"))):(row(0, i) ? column("median_ns") / 1000.0 : NaN) \
	with linespoints lc rgb pcolor(i - 1) pt ppoint(i - 1) ps 1.2 * DOT lw 2 title word(EXTRA, i)
