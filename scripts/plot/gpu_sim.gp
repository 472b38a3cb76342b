# SPDX-License-Identifier: Apache-2.0
# Modelled against measured driver time, one point for each policy on each trace, with the range of
# its rounds. CSV: sim.csv.
load ARG0[1:strlen(ARG0)-strlen("gpu_sim.gp")]."style.gp"
eval arguments
eval sheet(640, 560)
set output OUTPUT
set title TITLE."\n".SUBTITLE
set logscale xy 10
set xlabel "measured driver time (ms, median of the rounds, minutes apart)"
set ylabel "modelled driver time (ms)"
set grid lc rgb GRID
set key top left reverse Left
set rmargin 5
set xrange [0.03:10000]
set yrange [0.03:10000]
plot x lc rgb AXIS title "equal", 1.25 * x lc rgb AXIS dt 2 title "within 25 %", 0.75 * x lc rgb AXIS dt 2 notitle, \
	CSV using (column("driver_ns") / 1e6):(column("modelled_ns") / 1e6):(column("driver_ns_min") / 1e6):(column("driver_ns_max") / 1e6) \
		with xerrorbars pt -1 lw 0.5 lc rgb GRID title "fastest and slowest round", \
	CSV using (column("driver_ns") / 1e6):(column("modelled_ns") / 1e6) with points pt 7 ps 0.8 * DOT lc rgb BLUE title "policy on a trace"
