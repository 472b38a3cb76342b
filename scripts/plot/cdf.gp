# SPDX-License-Identifier: Apache-2.0
# Distribution of the time of an alloc: host time within (left), driver time beyond (right).
# EXTRA: modelled or measured (the driver time).
load ARG0[1:strlen(ARG0)-strlen("cdf.gp")]."style.gp"
eval arguments
eval measure_head

hosts = 0
waits = 0
note(ns, beyond) = (hosts = hosts + (strcol("clock") eq "host"), waits = waits + (strcol("clock") eq "driver" && ns > 0 && beyond > 0), 0)
eval read_names
set table $notes
plot CSV using (note(column("ns"), column("share_beyond"))) with table
unset table

LONGEST = LONGEST > LEGEND_NAME ? LEGEND_NAME : LONGEST
rows = legend_rows(COUNT, LONGEST)
eval sheet(900, HEAD + 300 + 76 + 22 * rows)
eval open_output
set multiplot
eval head
set tmargin at screen py(HEAD)
set bmargin at screen py(HEAD + 300)
set logscale x
set format x "%.0s %cs"
set xtics 100
set grid xtics ytics lc rgb GRID lt 1 lw 1
set key at screen px(20), py(HEAD + 300 + 68) left top Left reverse vertical maxrows rows samplen 4 spacing 1.02
from(name, i) = strcol("clock") eq name && column("series") == i && column("ns") > 0 ? column("ns") / 1e9 : NaN

if (hosts) {
	set lmargin at screen px(72)
	set rmargin at screen px(waits ? W / 2 - 30 : W - 36)
	set xlabel "host time, measured (log)" tc rgb INK
	set ylabel "allocs within this time (%)" tc rgb INK
	set yrange [0:100]
	plot for [i = 0:COUNT - 1] CSV using (from("host", i)):(100 * column("share_up_to")) with steps lw 2 dt pdash(i) lc rgb pcolor(i) title cut(NAME[i + 1], LEGEND_NAME)
	unset label 1001
	unset label 1002
	unset key
}
if (waits) {
	set lmargin at screen px(hosts ? W / 2 + 62 : 82)
	set rmargin at screen px(W - 36)
	set xlabel "driver time, ".EXTRA." (log)" tc rgb INK
	set ylabel "share of allocs that wait longer (log)" tc rgb INK
	set logscale y
	set format y "%g"
	set yrange [*:1]
	plot for [i = 0:COUNT - 1] CSV using (from("driver", i)):(column("share_beyond") > 0 ? column("share_beyond") : NaN) with steps lw 2 dt pdash(i) lc rgb pcolor(i) title cut(NAME[i + 1], LEGEND_NAME)
}
unset multiplot
