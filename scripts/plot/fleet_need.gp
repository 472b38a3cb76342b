# SPDX-License-Identifier: Apache-2.0
# Every rank of a fleet from the smallest to the largest: live, reserved today, reserved then.
load ARG0[1:strlen(ARG0)-strlen("fleet_need.gp")]."style.gp"
eval arguments

eval limits_of("column('today_bytes')")
top = STATS_max > MIB ? STATS_max : MIB
S = scale_of(top)
eval open(HEAD + 260 + 152)
eval across(68, W - 24)
eval down(HEAD, HEAD + 260)
eval key_below(12, HEAD + 324, 4)
set xlabel "part of the ranks that need at most so much (%)" tc rgb INK
set xrange [0:100]
set yrange [0:top / S * 1.05]
eval left_title("peak per rank (".unit_of(top).")", HEAD + 130)
x = 'column("ranks_ratio") * 100'
plot CSV using (@x):(column("live_bytes") / S):(column("today_bytes") / S) with filledcurves fs solid 0.35 noborder lc rgb AREA title "reserved and not in use today", \
	"" using (@x):(column("today_bytes") / S) with lines lw 2 lc rgb INK title "reserved today", \
	"" using (@x):(column("then_bytes") / S) with lines lw 2 dt 2 lc rgb BLUE title "reserved with the settings of the plan", \
	"" using (@x):(column("live_bytes") / S) with lines lw 1.6 dt 3 lc rgb AXIS title "live: no allocator needs less"
