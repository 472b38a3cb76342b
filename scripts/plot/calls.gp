# SPDX-License-Identifier: Apache-2.0
# Driver calls (left) and driver time (right) per policy. EXTRA: modelled or measured.
load ARG0[1:strlen(ARG0)-strlen("calls.gp")]."style.gp"
eval arguments
eval measure_head

eval read_names
# before any range is set: stats obeys ranges
calls_of(row) = column("count") + column("failed")
stats CSV using (strcol("call") eq "all" && calls_of(0) > 0 ? calls_of(0) : NaN) nooutput
called = exists("STATS_records")	# stats leaves no variables where nothing is valid
most_calls = called && STATS_max > 10 ? STATS_max : 10
stats CSV using (strcol("call") eq "all" && column("ns") > 0 ? column("ns") : NaN) nooutput
timed = exists("STATS_records")
most = timed ? STATS_max : 1e6
least = timed ? STATS_min : 1e3

ROW = 26
body = ROW * COUNT + 10
eval sheet(900, HEAD + 6 + body + 66)
eval open_output
set multiplot
eval head
left = 30 + 7.9 * (LONGEST < NAME_WIDTH ? LONGEST : NAME_WIDTH)
middle = (left + W) / 2.0
set tmargin at screen py(HEAD + 6)
set bmargin at screen py(HEAD + 6 + body)
set yrange [-COUNT + 0.4:0.6]
unset ytics
unset key
set border 1
set grid noytics xtics lc rgb GRID lt 1 lw 1
set logscale x
set format x "%.0s%c"
calls(n) = n < 1e5 ? sprintf("%.0f", n) : n < 1e6 ? sprintf("%.0f k", n / 1e3) : sprintf("%.2f M", n / 1e6)
span(ns) = ns < 1e6 ? sprintf("%.1f µs", ns / 1e3) : ns < 1e9 ? sprintf("%.2f ms", ns / 1e6) : sprintf("%.2f s", ns / 1e9)
total(v) = strcol("call") eq "all" && v > 0 ? v : NaN

do for [i = 0:COUNT - 1] {
	set label i + 1 fold(NAME[i + 1]) at screen px(left - 10), first -i right offset 0, character (strlen(NAME[i + 1]) > NAME_WIDTH ? 0.45 : 0) font FONT.",13" tc rgb INK
}
set lmargin at screen px(left)
set rmargin at screen px(middle - 34)
set xlabel "driver calls (number, log)" tc rgb INK
set xrange [1:10 ** ceil(log10(most_calls) + 0.7)]
if (called == 0) { plot NaN } else { plot CSV using (total(calls_of(0))):(-column("rank")) with points pt 7 ps 1.1 * DOT lc rgb BLUE, \
	CSV using (total(calls_of(0))):(-column("rank")):(calls(calls_of(0))) with labels left offset character 0.9, 0 font FONT.",12.5" tc rgb INK }
unset for [i = 1:COUNT] label i
unset label 1001
unset label 1002

set lmargin at screen px(middle + 18)
set rmargin at screen px(W - 40)
set xlabel "driver time, ".EXTRA." (log)" tc rgb INK
set xrange [10 ** floor(log10(least)) / 1e9:10 ** ceil(log10(most) + 0.8) / 1e9]
set format x "%.0s %cs"
set xtics decades(least, most * 6, 3)
if (timed == 0) { plot NaN } else { plot CSV using (total(column("ns")) / 1e9):(-column("rank")) with points pt 5 ps 1.1 * DOT lc rgb VERMILLION, \
	CSV using (total(column("ns")) / 1e9):(-column("rank")):(span(column("ns"))) with labels left offset character 0.9, 0 font FONT.",12.5" tc rgb INK }
unset multiplot
