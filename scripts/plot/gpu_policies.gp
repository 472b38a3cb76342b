# SPDX-License-Identifier: Apache-2.0
# Latency percentiles of each policy's alloc and free on one trace. CSV: rows of policies.csv, fastest first.
load ARG0[1:strlen(ARG0)-strlen("gpu_policies.gp")]."style.gp"
eval arguments
eval sheet(900, 620)
set output OUTPUT
set title TITLE."\n".SUBTITLE
set logscale x 10
set xlabel "one request: p50 (filled), p99 (hollow), p99.9 (cross), in ns"
set yrange [*:*] reverse
set offsets graph 0, 0, 0.5, 0.5
set grid xtics lc rgb GRID
set ytics scale 0
set key outside above right horizontal
half(k) = k ? 0.17 : -0.17
ns(k, p) = column((k ? "free_" : "alloc_").p."_ns")
color(k) = k ? VERMILLION : BLUE
# a line from the median to p99.9, one of each
plot CSV using (ns(0, "p50")):0:ytic(2) with points ps 0.01 notitle, \
	for [k=0:1] CSV using (ns(k, "p50")):($0 + half(k)):(ns(k, "p999") - ns(k, "p50")):(0) \
		with vectors nohead lc rgb color(k) lw 1.5 notitle, \
	for [k=0:1] CSV using (ns(k, "p50")):($0 + half(k)) with points lc rgb color(k) pt (k ? 5 : 7) ps 1.4 * DOT title (k ? "free" : "alloc"), \
	for [k=0:1] CSV using (ns(k, "p99")):($0 + half(k)) with points lc rgb color(k) pt (k ? 4 : 6) ps 1.4 * DOT notitle, \
	for [k=0:1] CSV using (ns(k, "p999")):($0 + half(k)) with points lc rgb color(k) pt 2 ps 1.4 * DOT notitle
