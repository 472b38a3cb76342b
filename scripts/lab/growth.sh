#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How the cost of a call grows with the number of free blocks (tests/bench/growth.c):
#	growth.sh BUILD_FOLDER > results/performance/growth.csv
# Instructions per call by callgrind for 1 k, 10 k and 100 k free blocks, nanoseconds up to 10 M. About ten minutes and
# 6 GiB of memory. The row of a policy that cannot take a pattern says why.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C
b=${1:?usage: growth.sh BUILD_FOLDER}
growth=$b/tests/bench/growth
make --no-print-directory B="$b" "$growth" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# cell POLICY PATTERN N [count]: one row: times, or with `count` instructions
cell() {
	local run=("$growth" "$1" "$2" "$3") line calls
	[ "${4:-}" != count ] ||
		run=(valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/counts" "${run[@]}")
	if ! line=$("${run[@]}" 2> "$work/err"); then
		echo "$1,$2,$3,,$(sed -n 's/^growth: //p' "$work/err" | tr ',\n' '; '),,,"
	elif [ "${4:-}" = count ]; then
		calls=$(cut -d, -f4 <<< "$line")
		echo "$1,$2,$3,$calls,$(($(sed -n 's/^totals: //p' "$work/counts" | tail -n 1) / calls)),,,"
	else
		awk -F, -v OFS=, '{ print $1, $2, $3, $4, "", $5, $6, $7 }' <<< "$line"
	fi
}

echo policy,pattern,n,calls,instructions_per_call,fill_ns,steady_ns,drain_ns
for policy in pytorch pytorch:expandable_segments:True; do
	for pattern in equal mixed near streams alternate released; do
		for n in 1000 10000 100000; do cell $policy $pattern $n count; done
		for n in 1000 10000 100000; do cell $policy $pattern $n; done
		[ $pattern = released ] || cell $policy $pattern 1000000
	done
	for pattern in equal mixed; do cell $policy $pattern 10000000; done
done
for policy in async bfc bfc:variant=ort buddy cub cupy dali-vm dynamicpool ggml native paddle quickpool \
	rmm-arena rmm-binning rmm-pool slab tlsf umpire-mixed vmm; do
	for pattern in equal mixed near streams alternate released; do
		for n in 1000 10000; do cell $policy $pattern $n count; done
	done
	for pattern in equal mixed; do cell $policy $pattern 100000 count; done
	for n in 1000 100000 1000000; do cell $policy mixed $n; done
done
cell cub streams 100000 count
cell buddy released 100000 count
