#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Can calls that map memory be taken off the thread that launches kernels, and what do they cost on a card in use? About a minute on a card:
#	handover.sh OUT
# prices.csv: each call, idle and busy card, several handles at once; then the same beside five neighbours (neighbours.csv).
# threads.csv: time of fixed launches beside calls of the same thread, of another, of none; with neighbours: threads-neighbours.csv.
# handover.md: what these say. HANDOVER: the program, if it is built already.
set -uo pipefail
mkdir -p "$1" && out=$(realpath "$1") && cd "$(dirname "$0")" || exit 1
program=${HANDOVER:-$out/handover}
exec 3> "$out/log.txt"
neighbours=()
trap '[ ${#neighbours[@]} = 0 ] || kill "${neighbours[@]}"' EXIT
[ -x "$program" ] || nvcc -O2 -std=c++17 -o "$program" handover.cu
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >&3
"$program" prices > "$out/prices.csv" 2>&3
"$program" threads 2 > "$out/threads.csv" 2>&3
for _ in 1 2 3 4 5; do
	"$program" load 90 > /dev/null 2>&3 &
	neighbours+=($!)
done
sleep 2
"$program" prices > "$out/neighbours.csv" 2>&3
"$program" threads 1 > "$out/threads-neighbours.csv" 2>&3
for kind in "" -neighbours; do
	awk -F, -v title="threads$kind" '
	NR > 1 { k = $1 "," $2 "," $3; wall[k] += $5; n[k]++; calls[k] += $6; us[k] += $7; p99[k] += $9; if (!(k in seen)) { seen[k]; order[++m] = k } }
	END {
		print title "\nregime, calls, by: wall ms, beside nobody; calls, us a call; us of the wall that a call costs; launch p99 us"
		for (i = 1; i <= m; i++) {
			k = order[i]
			split(k, a, ",")
			base = wall[a[1] ",none,nobody"] / n[a[1] ",none,nobody"]
			w = wall[k] / n[k]
			printf "%-40s %8.1f %6.3f %6d %8.1f %8.1f %8.1f\n", k, w, w / base, calls[k] / n[k], us[k] / n[k],
				calls[k] ? (w - base) * 1000 * n[k] / calls[k] : 0, p99[k] / n[k]
		}
	}' "$out/threads$kind.csv"
done > "$out/handover.md"
{ echo prices; cat "$out/prices.csv"; echo neighbours; cat "$out/neighbours.csv"; } >> "$out/handover.md"
cat "$out/handover.md"
