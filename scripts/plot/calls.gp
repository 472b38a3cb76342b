# SPDX-License-Identifier: Apache-2.0
# Driver calls (left) and driver time (right) per policy. EXTRA: modelled or measured.
load ARG0[1:strlen(ARG0)-strlen("calls.gp")]."style.gp"
eval arguments

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

ROW = pitch(34)
body = ROW * COUNT + 10
eval open(HEAD + 6 + body + 78)
set multiplot
left = name_room(LONGEST)
middle = left + (W - left) * 0.47
eval down(HEAD + 6, HEAD + 6 + body)
eval name_rows
unset key
set logscale x
set format x "%.0s%c"
calls(n) = n < 1e5 ? sprintf("%.0f", n) : n < 1e6 ? sprintf("%.0f k", n / 1e3) : sprintf("%.2f M", n / 1e6)
span(ns) = ns < 1e6 ? sprintf("%.0f µs", ns / 1e3) : ns < 1e9 ? sprintf("%.3g ms", ns / 1e6) : sprintf("%.3g s", ns / 1e9)
total(v) = strcol("call") eq "all" && v > 0 ? v : NaN

eval across(left, middle - 34)
set xlabel "driver calls\n(log)" tc rgb INK
top_calls = 10 ** ceil(log10(most_calls) + 1.6)
set xrange [1:top_calls]
set xtics decades(1, top_calls, 3)
if (called == 0) { plot NaN } else { plot CSV using (total(calls_of(0))):(-column("rank")) with points pt 7 ps 1.1 * DOT lc rgb AXIS, \
	CSV using (total(calls_of(0))):(-column("rank")):(calls(calls_of(0))) with labels left offset character 0.7, 0 font SMALL tc rgb INK }
unset label

eval across(middle + 34, W - 26)
set xlabel "driver time,\n".EXTRA." (log)" tc rgb INK
set xrange [10 ** floor(log10(least)) / 1e9:10 ** ceil(log10(most) + 1.8) / 1e9]
set format x "%.0s %cs"
set xtics decades(least, most * 60, 2) == 100 ? 1000 : 100
if (timed == 0) { plot NaN } else { plot CSV using (total(column("ns")) / 1e9):(-column("rank")) with points pt 5 ps 1.1 * DOT lc rgb AXIS, \
	CSV using (total(column("ns")) / 1e9):(-column("rank")):(span(column("ns"))) with labels left offset character 0.7, 0 font SMALL tc rgb INK }
unset multiplot
