# SPDX-License-Identifier: Apache-2.0
# Distribution of the time of an alloc: host time within (above), driver time beyond (below).
# EXTRA: modelled or measured (the driver time).
load ARG0[1:strlen(ARG0)-strlen("cdf.gp")]."style.gp"
eval arguments

hosts = 0
waits = 0
note(ns, beyond) = (hosts = hosts + (strcol("clock") eq "host" && ns > 0), waits = waits + (strcol("clock") eq "driver" && ns > 0 && beyond > 0), 0)
eval read_names
eval each("note(column('ns'), column('share_beyond'))")

title_of(i) = letter(i)."  ".short(NAME[i + 1], LEGEND_NAME)
rows = legend_rows(COUNT, LONGEST + 3)
panels = (hosts > 0) + (waits > 0)
TALL = 220
PITCH = TALL + 66
eval open(HEAD + PITCH * panels + 8 + LEGEND_ROW * rows)
set multiplot
set logscale x
set format x "%.0s %cs"
set grid xtics ytics
eval across(92, W - 26)
unset key
from(name, i) = strcol("clock") eq name && column("series") == i && column("ns") > 0 ? column("ns") / 1e9 : NaN
# marks on every so many rows
mark(i, row, v) = int(row) % 23 == int(i * 7) % 23 ? v : NaN
up = HEAD

if (hosts) {
	eval down(up, up + TALL)
	set xlabel "host time, measured (log)" tc rgb INK
	eval left_title("allocs within this time (%)", up + TALL / 2)
	set yrange [0:100]
	plot for [i = 0:COUNT - 1] CSV using (from("host", i)):(100 * column("share_up_to")) with steps lw 2 lc rgb pcolor(i) notitle, \
		for [i = 0:COUNT - 1] CSV using (mark(i, column(0), from("host", i))):(100 * column("share_up_to")) with points pt ppoint(i) ps DOT lc rgb pcolor(i) notitle
	eval headed
	up = up + PITCH
}
if (waits) {
	eval down(up, up + TALL)
	set xlabel "driver time, ".EXTRA." (log)" tc rgb INK
	eval left_title("share that waits longer (log)", up + TALL / 2)
	set logscale y
	set format y "%g"
	set yrange [*:1]
	y(v) = column("share_beyond") > 0 ? column("share_beyond") : NaN
	plot for [i = 0:COUNT - 1] CSV using (from("driver", i)):(y(0)) with steps lw 2 lc rgb pcolor(i) notitle, \
		for [i = 0:COUNT - 1] CSV using (mark(i, column(0), from("driver", i))):(y(0)) with points pt ppoint(i) ps DOT lc rgb pcolor(i) notitle
}
LEGEND_AT = HEAD + PITCH * panels + 2
eval legend_area
plot NaN notitle, for [i = 0:COUNT - 1] keyentry with linespoints lw 2 pt ppoint(i) ps DOT lc rgb pcolor(i) title title_of(i)
unset multiplot
