# SPDX-License-Identifier: Apache-2.0
# Address-space map, one panel per policy. EXTRA: s or events.
load ARG0[1:strlen(ARG0)-strlen("addresses.gp")]."style.gp"
eval arguments

eval read_names
FROM = EXTRA eq "s" ? "from_s" : "from_event"
TO = EXTRA eq "s" ? "to_s" : "to_event"
eval limits_of("column(TO)")
last = STATS_max > 0 ? STATS_max : 1
eval limits_of("column('high_bytes')")
S = scale_of(STATS_max)
U = unit_of(STATS_max)
top = STATS_max > 0 ? STATS_max / S : 1

PANEL = 220
PITCH = PANEL + 54
eval open(HEAD + COUNT * PITCH + 34 + LEGEND_ROW * 2)
set multiplot
eval across(68, W - 14)
set xrange [0:last] noextend
set xtics step(last, 7)
set grid noxtics noytics
# live, waiting, non-releasable, releasable: causes 1, 3, 4 and 5 of style.gp
USES = "live waiting non_releasable releasable"
array USE_NAME[4] = ["in use", "waiting for a stream", "free, non-releasable", "free, releasable"]
array USE_CAUSE[4] = [1, 3, 4, 5]
do for [i = 0:COUNT - 1] {
	up = HEAD + 22 + i * PITCH
	eval down(up, up + PANEL)
	set yrange [0:top] noextend
	eval left_title("address (".U.")", up + PANEL / 2)
	set label 1 cut(NAME[i + 1], 60) at graph 0, graph 1 left offset 0, character 0.6 tc rgb INK
	if (i == COUNT - 1) {
		set xlabel (EXTRA eq "s" ? "recorded time (s)" : "trace event (number)") tc rgb INK
		eval key_below(10, up + PANEL + 62, 2)
	} else {
		set xlabel ""
		unset key
	}
	plot for [k = 1:4] CSV using (column("panel") == i && strcol("use") eq word(USES, k) ? column(FROM) : NaN):(column("low_bytes") / S):(column(FROM)):(column(TO)):(column("low_bytes") / S):(column("high_bytes") / S) with boxxyerror fs solid 1.0 noborder lc rgb CAUSE_COLOR[USE_CAUSE[k]] title USE_NAME[k]
	eval headed
}
unset multiplot
