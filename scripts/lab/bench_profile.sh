#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does `cufrag bench --profile` make a profile that holds? Makes one on this card, replays the bundled traces under
# the policies with it, and says in how many replays the modelled driver time is near the measured:
#	bench_profile.sh OUT [SECONDS]
# REPEATS (3): runs of a replay, whose median counts: a single one is off by more in one of twenty. SECONDS
# (145): all in all; replays begin with half of the policies on the smallest traces and stop there. OUT gets
# calls.csv and profile.csv (of bench), sim.csv (a row for each replay), summary.txt. DEVICE=sim is a dry run, CUFRAG names the
# program, TRACES the files. Exit status 1: fewer than 95 % of the replays within 25 %, or something failed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C NO_COLOR=1
[ $# -ge 1 ] || { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
end=$((SECONDS + ${2:-145}))
device=${DEVICE:-cuda}
cufrag=${CUFRAG:-build/release/cufrag}
# shellcheck disable=SC2012 # names are ours
read -r -a traces <<< "${TRACES:-$(ls -Sr traces/*.cft | tr '\n' ' ')}"
mkdir -p "$out"

begin=$SECONDS
"$cufrag" bench --device "$device" --csv "$out/calls.csv" --profile "$out/profile.csv" > "$out/bench.log" 2>&1 ||
	{ cat "$out/bench.log"; exit 1; }
made=$((SECONDS - begin))

# those that run on their own; with as many names in each half
mapfile -t policies < <("$cufrag" list policies | sed -n 's/^\([a-z][a-z0-9-]*\): .*/\1/p' |
	grep -vxE 'check|limit|log|null|ggml-vmm|planned'; echo pytorch:expandable_segments:True)

# the half $1 of them for the trace $2; those that take minutes are left out of the larger ones
half() {
	local i size names=
	size=$(stat -c %s "$2")
	for ((i = $1; i < ${#policies[@]}; i += 2)); do
		case ${policies[i]} in
		managed) [ "$size" -le 15000 ] || continue ;;
		native | cub) [ "$size" -le 100000 ] || continue ;;
		esac
		names+="${policies[i]};"
	done
	echo "${names%;}"
}

rm -f "$out/sim.csv"
for ((k = 0; k < 2; k++)); do
	for t in "${traces[@]}"; do
		[ $SECONDS -lt $((end - 2)) ] || break 2
		limit=()
		case $t in *oomcap*) limit=(--limit 7.5G) ;; esac # PyTorch does not record it
		timeout $((end - SECONDS)) "$cufrag" compare "$t" --device "$device" "${limit[@]}" --optimum off --work idle \
			--policies "$(half $k "$t")" --repeats "${REPEATS:-3}" --cost "$out/profile.csv" --against-sim "$out/one.csv" \
			> "$out/compare.log" 2>&1 || { tail -n 3 "$out/compare.log" >&2; continue; }
		[ -s "$out/sim.csv" ] || head -n 1 "$out/one.csv" > "$out/sim.csv"
		tail -n +2 "$out/one.csv" >> "$out/sim.csv"
	done
done
rm -f "$out/one.csv"
[ -s "$out/sim.csv" ] || exit 1

awk -F, -v made=$made -v seconds=$SECONDS '
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$at["driver_ns"] > 0 {
	n++
	ratio = $at["modelled_ns"] / $at["driver_ns"]
	alone = ratio / $at["host_ratio"] # about: each kind of call follows the host in its own way
	near += ok = ratio >= 0.75 && ratio <= 1.25
	near_alone += alone >= 0.75 && alone <= 1.25
	all[n] = ratio
	if (!ok) far = far sprintf("  %-20s %-36s %.2f (host %.2f)\n", $1, $3, ratio, $at["host_ratio"])
}
END {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && all[j] < all[j - 1]; j--) { x = all[j]; all[j] = all[j - 1]; all[j - 1] = x }
	printf "profile made in %d s, all in %d s\n", made, seconds
	printf "within 25 %%: %d of %d replays (%.1f %%), median %.2f, from %.2f to %.2f\n", near, n,
		n ? 100 * near / n : 0, all[int((n + 1) / 2)], all[1], all[n]
	printf "the profile alone, at whatever speed the host was: %d of %d\n", near_alone, n
	if (far != "") printf "not within 25 %%, modelled over measured:\n%s", far
	exit !n || near < 0.95 * n
}' "$out/sim.csv" > "$out/summary.txt"
status=$?
grep -E '^# (of them|host|[a-z].*: )' "$out/profile.csv" | sed 's/^# /profile: /' >> "$out/summary.txt"
grep '^cudaDeviceSynchronize' "$out/calls.csv" | cut -d, -f 1,5,7,9 >> "$out/summary.txt"
cat "$out/summary.txt"
exit $status
