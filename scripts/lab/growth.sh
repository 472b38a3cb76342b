#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How the cost of a call grows with the number of free blocks (tests/bench/growth.c):
#	growth.sh [--quick] BUILD_FOLDER
# Instructions per call by callgrind for n = 1 k, 10 k (and 100 k for some), every policy that is not
# linear by its rule and every pattern; nanoseconds per call up to n = 10 M for PyTorch's,
# 1 M for the others. --quick: PyTorch's only, up to 1 M. Writes results/performance/growth.csv and
# growth.md beside it. Takes about ten minutes and 6 GiB of memory; --quick one and 1 GiB.
#
# The rows of a policy that cannot take a pattern (no room for so many reservations) say so.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

quick=0
[ "${1:-}" = --quick ] && { quick=1; shift; }
b=${1:?usage: growth.sh [--quick] BUILD_FOLDER}
growth=$b/tests/bench/growth
out=results/performance
work=$b/growth
rows=$work/growth.csv
mkdir -p "$work"
make --no-print-directory B="$b" "$growth" > /dev/null

main_policies='pytorch pytorch:expandable_segments:True'
policies='async bfc bfc:variant=ort buddy cub cupy dali-vm dynamicpool ggml native paddle quickpool
	rmm-arena rmm-binning rmm-pool slab tlsf umpire-mixed vmm'
patterns='equal mixed near streams alternate released'
[ $quick = 0 ] || policies=

echo 'policy,pattern,n,calls,instructions_per_call,fill_ns,steady_ns,drain_ns' > "$rows"

# cell POLICY PATTERN N: one row, times and, with callgrind, instructions
cell() {
	local how=$1 policy=$2 pattern=$3 n=$4 line counts calls instructions=
	if [ "$how" = count ]; then
		counts=$work/callgrind.out
		line=$(valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$counts" \
			"$growth" "$policy" "$pattern" "$n" 2> "$work/err") || { refused "$@"; return; }
		calls=$(cut -d, -f4 <<< "$line")
		instructions=$(($(sed -n 's/^totals: //p' "$counts" | tail -n 1) / calls))
		echo "$policy,$pattern,$n,$calls,$instructions,,," >> "$rows"
	else
		line=$("$growth" "$policy" "$pattern" "$n" 2> "$work/err") || { refused "$@"; return; }
		awk -F, -v OFS=, '{ print $1, $2, $3, $4, "", $5, $6, $7 }' <<< "$line" >> "$rows"
	fi
}
refused() {
	echo "$2,$3,$4,,$(sed -n 's/^growth: //p' "$work/err" | tr ',\n' '; '),,," >> "$rows"
	echo "growth: $2, $3, $4: $(grep '^growth' "$work/err" || tail -n 1 "$work/err")" >&2
}
callgrind=count
command -v valgrind > /dev/null || { callgrind=; echo 'growth: no valgrind: times only' >&2; }

for policy in $main_policies; do
	for pattern in $patterns; do
		for n in ${callgrind:+1000 10000 100000}; do cell count "$policy" "$pattern" "$n"; done
		for n in 1000 10000 100000; do cell time "$policy" "$pattern" "$n"; done
		[ "$pattern" = released ] || cell time "$policy" "$pattern" 1000000
	done
	[ $quick = 1 ] || for pattern in equal mixed; do cell time "$policy" "$pattern" 10000000; done
done
for policy in $policies; do
	for pattern in $patterns; do
		for n in ${callgrind:+1000 10000}; do cell count "$policy" "$pattern" "$n"; done
	done
	[ -z "$callgrind" ] || for pattern in equal mixed; do cell count "$policy" "$pattern" 100000; done
	[ -z "$callgrind" ] || [ "$policy" != cub ] || cell count cub streams 100000
	[ -z "$callgrind" ] || [ "$policy" != buddy ] || cell count buddy released 100000
	for n in 1000 100000 1000000; do cell time "$policy" mixed $n; done
done

describe() {
	cat <<-END
	# Growth

	| | |
	|---|---|
	| command | \`scripts/lab/growth.sh$([ $quick = 0 ] || echo ' --quick') BUILD_FOLDER\` |
	| machine | $(scripts/build/machine.sh), $(gcc --version | head -n 1) |
	| date, version | $(date -u +%Y-%m-%d), $("$b/cufrag" --version) |

	The test fills a pool with n free blocks, each between two live ones, and then takes one block and frees one in turn
	(tests/bench/growth.c names the patterns). With 100 times as many free blocks, an operation that visits all of them would
	take a hundred times as many instructions; one that is O(log n) takes about two thirds more: log(100 k)
	is 1.67 times log(1 k). Instructions are those of the whole call, on \`sim\` with its model of the driver. Times
	grow more, because the blocks no longer fit into the caches: at 10 M they are 3 GB.

	Two rows grow by more, up to a limit: \`pytorch\`, mixed, has lists in its bins at 1 k and trees at 100 k;
	\`cub\`, streams, queries one event of each stream with cached blocks, at most 1,000, like its source.

	Instructions per call:

	END
	awk -F, 'NR > 1 && $5 != "" && $5 ~ /^[0-9]+$/ {
			key = $1 "|" $2
			if (!(key in seen)) { seen[key] = ++keys; name[keys] = key }
			cell[key, $3] = $5
		}
		END {
			print "| policy | pattern | 1 k | 10 k | 100 k | last / first |"
			print "|---|---|---|---|---|---|"
			for (i = 1; i <= keys; i++) {
				split(name[i], part, "|")
				k = name[i]; first = cell[k, 1000]
				last = cell[k, 100000] != "" ? cell[k, 100000] : cell[k, 10000]
				printf "| `%s` | %s | %s | %s | %s | %s |\n", part[1], part[2], first, cell[k, 10000], cell[k, 100000],
					first ? sprintf("%.2f", last / first) : ""
			}
		}' "$rows"
	printf '\nNanoseconds per call in the measured part:\n\n'
	awk -F, 'NR > 1 && $7 != "" {
			key = $1 "|" $2
			if (!(key in seen)) { seen[key] = ++keys; name[keys] = key }
			cell[key, $3] = $7
		}
		END {
			print "| policy | pattern | 1 k | 10 k | 100 k | 1 M | 10 M |"
			print "|---|---|---|---|---|---|---|"
			for (i = 1; i <= keys; i++) {
				split(name[i], part, "|"); k = name[i]
				printf "| `%s` | %s | %s | %s | %s | %s | %s |\n", part[1], part[2], cell[k, 1000], cell[k, 10000],
					cell[k, 100000], cell[k, 1000000], cell[k, 10000000]
			}
		}' "$rows"
	if awk -F, 'NR > 1 && $4 == "" { found = 1 } END { exit !found }' "$rows"; then
		printf '\nNot run:\n\n'
		awk -F, 'NR > 1 && $4 == "" { print "* `" $1 "`, " $2 ", n = " $3 ": " $5 }' "$rows"
	fi
}

describe > "$work/growth.md"
mv "$rows" "$out/growth.csv"
mv "$work/growth.md" "$out/growth.md"
echo "growth: wrote $out/growth.csv and $out/growth.md"
