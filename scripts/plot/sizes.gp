# SPDX-License-Identifier: Apache-2.0
# Histograms of request sizes and lifetimes. EXTRA: s or events (unit of lifetimes).
load ARG0[1:strlen(ARG0)-strlen("sizes.gp")]."style.gp"
eval arguments
eval measure_head

life = EXTRA eq "s" ? "lifetime_s" : "lifetime_events"
array COUNTS[2]
array BYTES[2]
COUNTS[1] = 0; COUNTS[2] = 0; BYTES[1] = 0; BYTES[2] = 0
lives = 0
LOW = 1e30
HIGH = 0
add(k) = (COUNTS[k] = COUNTS[k] + column("count"), BYTES[k] = BYTES[k] + column("bytes"), lives = lives + (k == 2), LOW = k == 1 && column("low") < LOW ? column("low") : LOW, HIGH = k == 1 && column("high") > HIGH ? column("high") : HIGH, 0)
set table $notes
plot CSV using (add(strcol("kind") eq "size_bytes" ? 1 : 2)) with table
unset table

eval sheet(900, HEAD + 300 + 98)
eval open_output
set multiplot
eval head
set tmargin at screen py(HEAD)
set bmargin at screen py(HEAD + 300)
set ylabel "share (%)" tc rgb INK
set yrange [0:*]
set style fill solid 1.0 noborder
set key at screen px(20), py(HEAD + 300 + 68) left top Left reverse vertical maxrows 1 samplen 1.6
of(k, c) = strcol("kind") eq k ? column(c) : NaN
# a bar covers this part of its bin on the logarithmic axis
at(k, f) = of(k, "low") * (column("high") / column("low")) ** f
share(c, sum) = sum > 0 ? 100.0 * column(c) / sum : 0

set lmargin at screen px(80)
set rmargin at screen px(W / 2 - 28)
set logscale x 2
set xlabel "request size (log)" tc rgb INK
set xrange [LOW:HIGH]
octaves = log(HIGH / LOW) / log(2)
every = octaves <= 6 ? 1 : octaves <= 14 ? 3 : 6
named(e) = sprintf("%d %s", 2 ** (e % 10), word("B KiB MiB GiB TiB", e / 10 + 1))
set xtics ()
do for [e = 0:48:every] { set xtics add (named(e) 2 ** e) }
plot CSV using (at("size_bytes", 0.28)):(share("count", COUNTS[1])):(at("size_bytes", 0.06)):(at("size_bytes", 0.5)):(0):(share("count", COUNTS[1])) with boxxyerror lc rgb BLUE title "of the requests", \
	CSV using (at("size_bytes", 0.72)):(share("bytes", BYTES[1])):(at("size_bytes", 0.5)):(at("size_bytes", 0.94)):(0):(share("bytes", BYTES[1])) with boxxyerror lc rgb ORANGE title "of their bytes"
unset label 1001
unset label 1002
unset key

if (lives) {
	set lmargin at screen px(W / 2 + 56)
	set rmargin at screen px(W - 36)
	unset logscale x
	set xrange [*:*]
	set logscale x 10
	if (EXTRA eq "s") { set format x "%.0s %cs" } else { set format x "%.0s%c" }
	unset xtics
	set xtics nomirror out scale 0.6 textcolor rgb INK autofreq
	many = lives > 9 ? 100 : 10
	set xtics many
	set xlabel (EXTRA eq "s" ? "lifetime of a request (log)" : "lifetime of a request (trace events, log)") tc rgb INK
	plot CSV using (at(life, 0.28)):(share("count", COUNTS[2])):(at(life, 0.06)):(at(life, 0.5)):(0):(share("count", COUNTS[2])) with boxxyerror lc rgb BLUE, \
		CSV using (at(life, 0.72)):(share("bytes", BYTES[2])):(at(life, 0.5)):(at(life, 0.94)):(0):(share("bytes", BYTES[2])) with boxxyerror lc rgb ORANGE
}
unset multiplot
