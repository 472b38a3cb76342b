#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Charts of a folder that gpu_suite.sh has filled:
#	plot_gpu.sh FOLDER [FORMAT]	-> FOLDER/img/{calls,peer,policies,sim}.svg
set -euo pipefail
here=$(dirname "$0")
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [svg|png|pdf]" >&2; exit 2; }
folder=$1 format=${2:-svg}
mkdir -p "$folder/img"
card=$(sed -n 's/^cuda:0 *//p' "$folder/environment.txt" | sed 's/  .*//')
when=$(sed -n 's/^date: \(....-..-..\).*/\1/p' "$folder/environment.txt")
under="${card:-no card}, $when"

# draw CHART CSV TITLE EXTRA [SUBTITLE]
draw() { gnuplot -c "$here/../plot/gpu_$1.gp" "$2" "$folder/img/$1.$format" "$format" "$3" "${5:-$under}" "$4"; }
[ ! -s "$folder/calls.csv" ] || draw calls "$folder/calls.csv" "Latency of driver calls by size" \
	"cudaMalloc cudaFree cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess cuMemUnmap cuMemRelease"
[ ! -s "$folder/peer.csv" ] || draw peer "$folder/peer.csv" "Time per operation with memory cached" \
	"$(sed -n 's/^[^,]*,\(PyTorch[^,]*\),.*/\1/p' "$folder/peer.csv" | head -n 1)"
if [ -s "$folder/policies.csv" ]; then
	trace=varlen.default
	rows=$(mktemp)
	trap 'rm -f "$rows"' EXIT
	{ head -n 1 "$folder/policies.csv"; grep "^$trace," "$folder/policies.csv" | sort -t, -k 10n; } > "$rows"
	program=$(sed -n 's/^# \(cufrag [^ ]*\) bench.*/\1/p' "$folder/policies.log" | head -n 1)
	draw policies "$rows" "Latency of single requests, memory cached, $trace" "" "${card:-no card}, $program"
fi
[ ! -s "$folder/sim.csv" ] || draw sim "$folder/sim.csv" "Driver time: simulated against real" ""
