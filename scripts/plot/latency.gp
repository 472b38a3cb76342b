# SPDX-License-Identifier: Apache-2.0
# Percentiles of latency per class and policy: host time (left) and driver time (right), each
# on its own axis. EXTRA: modelled or measured (the driver time).
load ARG0[1:strlen(ARG0)-strlen("latency.gp")]."style.gp"
eval arguments

array CLASS[512]
ROWS = 0
hosts = 0
drivers = 0
note(r, c, h, m) = r < 0 ? 0 : (CLASS[int(r) + 1] = c, hosts = hosts + (h eq "host" && m > 0), drivers = drivers + (h eq "driver" && m > 0), ROWS = r + 1 > ROWS ? int(r) + 1 : ROWS, 0)
eval read_names
eval each("note(int(column('row')), strcol('class'), strcol('clock'), column('max_ns'))")

ROW = 19
body = ROW * ROWS + 8
eval open(HEAD + body + 76)
set multiplot
NAME_WIDTH = 27
left = 18 + 8.0 * (LONGEST < NAME_WIDTH ? LONGEST : NAME_WIDTH)
middle = (left + W) / 2.0
eval down(HEAD, HEAD + body)
set yrange [-ROWS + 0.3:0.7]
unset ytics
unset key
set border 1
set grid noytics xtics
set logscale x
set format x "%.0s %cs"
set xtics 1000
heading = ""
do for [r = 1:ROWS] {
	if (NAME[r] ne "") {
		set label r short(NAME[r], NAME_WIDTH) at screen px(left - 8), first -(r - 1) right font SMALL tc rgb INK
		if (CLASS[r] ne heading) {
			heading = CLASS[r]
			set label 600 + r heading at screen px(12), first -(r - 2) left font FONT." Bold,13.3" tc rgb INK
			set arrow 600 + r from screen px(12), first -(r - 2) - 0.5 to screen px(W - 12), first -(r - 2) - 0.5 nohead lc rgb GRID
		}
	}
}
of(name, c) = strcol("clock") eq name && column("row") >= 0 && column(c) > 0 ? column(c) / 1e9 : NaN
# where the slowest is above 0: at least a nanosecond
least(name, c) = of(name, "max_ns") == of(name, "max_ns") ? (column(c) > 0 ? column(c) : 1) / 1e9 : NaN
low(name) = least(name, "min_ns")
mid(name) = least(name, "p50_ns")

do for [clock in "host driver"] {
	host = clock eq "host"
	if (host ? hosts : drivers) {
		eval across(host || !hosts ? left : middle + 12, host && drivers ? middle - 12 : W - 16)
		set xlabel clock." time,\n".(host ? "measured" : EXTRA)." (log)" tc rgb INK
		plot CSV using (low(clock)):(-column("row")):(of(clock, "max_ns") - low(clock)):(0) with vectors nohead lw 1.4 lc rgb MID, \
			CSV using (mid(clock)):(-column("row")):(of(clock, "p99_ns") - mid(clock)):(0) with vectors nohead lw 5 lc rgb MID, \
			CSV using (mid(clock)):(-column("row")) with points pt (host ? 7 : 5) ps 0.8 * DOT lc rgb AXIS
		unset label
		unset arrow
	}
}
unset multiplot
