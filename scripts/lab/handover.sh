#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Can calls that map memory be taken off the thread that launches kernels, and what do they cost on a card in use? About a minute on a card:
#	handover.sh OUT
# prices.csv: each call, idle and busy card, several handles at once. handover.csv: time of fixed launches beside calls of the same thread,
# of another, of none. Both once alone and once beside five processes that launch and move. handover.md: the means. HANDOVER: the
# program, if it is built already.
set -uo pipefail
mkdir -p "$1" && out=$(realpath "$1") && cd "$(dirname "$0")" || exit 1
program=${HANDOVER:-$out/handover}
others=()
trap '[ ${#others[@]} = 0 ] || kill "${others[@]}"' EXIT
[ -x "$program" ] || nvcc -O2 -std=c++17 -o "$program" handover.cu || exit 1
part() { # ARGUMENT... into FILE, with the number of neighbours in front
	"$program" "${@:2}" | sed "s/^/${#others[@]},/; 1s/^[0-9]*/neighbours/" | tail -n +$((${#others[@]} ? 2 : 1)) >> "$out/$1"
}
rm -f "$out/prices.csv" "$out/handover.csv"
part prices.csv prices
part handover.csv threads 2
for _ in 1 2 3 4 5; do
	"$program" load 90 > /dev/null &
	others+=($!)
done
sleep 2
part prices.csv prices
part handover.csv threads 1
awk -F, '
NR > 1 { k = $1 "," $2 "," $3 "," $4; wall[k] += $6; n[k]++; calls[k] += $7; us[k] += $8; p99[k] += $10; if (!(k in seen)) { seen[k]; order[++m] = k } }
END {
	print "| neighbours | the launching thread waits for | calls | made by | calls | us a call | us of the wall that one costs | a launch, us, 99 % |\n|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= m; i++) {
		k = order[i]
		split(k, a, ",")
		base = a[1] "," a[2] ",none,nobody"
		printf "| %d | %s | %s | %s | %d | %.1f | %.1f | %.1f |\n", a[1], a[2], a[3], a[4], calls[k] / n[k], us[k] / n[k],
			calls[k] ? (wall[k] / n[k] - wall[base] / n[base]) * 1000 * n[k] / calls[k] : 0, p99[k] / n[k]
	}
}' "$out/handover.csv" > "$out/handover.md"
cat "$out/handover.md"
