# SPDX-License-Identifier: Apache-2.0
# Histograms of request sizes and lifetimes. EXTRA: s or events (unit of lifetimes).
load ARG0[1:strlen(ARG0)-strlen("sizes.gp")]."style.gp"
eval arguments

life = EXTRA eq "s" ? "lifetime_s" : "lifetime_events"
array COUNTS[2]
array BYTES[2]
COUNTS[1] = 0; COUNTS[2] = 0; BYTES[1] = 0; BYTES[2] = 0
lives = 0
LOW = 1e30
HIGH = 0
add(k) = (COUNTS[k] = COUNTS[k] + column("count"), BYTES[k] = BYTES[k] + column("bytes"), lives = lives + (k == 2), LOW = k == 1 && column("low") < LOW ? column("low") : LOW, HIGH = k == 1 && column("high") > HIGH ? column("high") : HIGH, 0)
eval each("add(strcol('kind') eq 'size_bytes' ? 1 : 2)")

TALL = 240
eval open(HEAD + TALL + 72 + LEGEND_ROW)
set multiplot
eval down(HEAD, HEAD + TALL)
eval left_title("share (%)", HEAD + TALL / 2)
set yrange [0:*]
set key at screen px(20), py(HEAD + TALL + 66) left top Left reverse vertical maxrows 1 samplen 2 font SMALL
of(k, c) = strcol("kind") eq k ? column(c) : NaN
# a bar covers this part of its bin on the logarithmic axis
at(k, f) = of(k, "low") * (column("high") / column("low")) ** f
share(c, sum) = sum > 0 ? 100.0 * column(c) / sum : 0

eval across(58, W / 2 - 14)
set logscale x 2
set xlabel "request size (log)" tc rgb INK
LOW = HIGH > LOW ? LOW : 1
HIGH = HIGH > LOW ? HIGH : 2 * LOW
octaves = log(HIGH / LOW) / log(2)
every = octaves <= 4 ? 1 : octaves <= 9 ? 3 : octaves <= 18 ? 5 : 10
set xrange [LOW:HIGH]
named(e) = sprintf("%d %s", 2 ** (e % 10), word("B KiB MiB GiB TiB", e / 10 + 1))
set xtics ()
do for [e = 0:48:every] { set xtics add (named(e) 2 ** e) }
plot CSV using (at("size_bytes", 0.28)):(share("count", COUNTS[1])):(at("size_bytes", 0.06)):(at("size_bytes", 0.5)):(0):(share("count", COUNTS[1])) with boxxyerror fs solid 1.0 noborder lc rgb AXIS title "of the requests", \
	CSV using (at("size_bytes", 0.72)):(share("bytes", BYTES[1])):(at("size_bytes", 0.5)):(at("size_bytes", 0.94)):(0):(share("bytes", BYTES[1])) with boxxyerror fs pattern 5 border rgb MID lc rgb MID title "of their bytes"
eval headed
unset key

if (lives) {
	eval across(W / 2 + 34, W - 20)
	unset logscale x
	set xrange [*:*]
	set logscale x 10
	if (EXTRA eq "s") { set format x "%.0s %cs" } else { set format x "%.0s%c" }
	unset xtics
	set xtics nomirror out scale 0.6 textcolor rgb INK autofreq
	many = lives > 8 ? 1000 : lives > 5 ? 100 : 10
	set xtics many
	set xlabel (EXTRA eq "s" ? "lifetime (log)" : "lifetime (trace events, log)") tc rgb INK
	plot CSV using (at(life, 0.28)):(share("count", COUNTS[2])):(at(life, 0.06)):(at(life, 0.5)):(0):(share("count", COUNTS[2])) with boxxyerror fs solid 1.0 noborder lc rgb AXIS, \
		CSV using (at(life, 0.72)):(share("bytes", BYTES[2])):(at(life, 0.5)):(at(life, 0.94)):(0):(share("bytes", BYTES[2])) with boxxyerror fs pattern 5 border rgb MID lc rgb MID
}
unset multiplot
