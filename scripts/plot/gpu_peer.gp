# SPDX-License-Identifier: Apache-2.0
# Time per operation, memory cached: the pytorch policy beside PyTorch's own allocator. CSV: peer.csv.
load ARG0[1:strlen(ARG0)-strlen("gpu_peer.gp")]."style.gp"
eval arguments
eval sheet(900, 480)
set output OUTPUT
set title TITLE."\n".SUBTITLE
set ylabel "warm, ns per operation"
set yrange [0:*]
set grid ytics lc rgb GRID
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9
set boxwidth 0.9
set xtics rotate by -25
set rmargin 8
set key outside above left horizontal
# every trace has two rows: the policy, then PyTorch
plot CSV every 2::0 using "warm_ns_per_op":xtic(1) lc rgb BLUE title "cufrag, policy pytorch", \
	CSV every 2::1 using "warm_ns_per_op" lc rgb VERMILLION title EXTRA
