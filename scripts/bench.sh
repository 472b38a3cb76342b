#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures speed and memory on this machine:
#	bench.sh BUILD_FOLDER [RUNS]
# a. reading a PyTorch snapshot, against Python's pickle.load of the same file in the same run
# b. replay under pytorch with metrics on, per allocation or free
# c. peak memory of import and of replay
# d. reading .cft
# e. every policy on one trace
# The serve recording comes from SHARED_TRACES when it is there (70 MiB plain); else a bundled
# trace stands in and the rows say so. Medians of RUNS (default 7) after one warm-up; python3 runs
# the clock. Writes results/performance/bench.csv and README.md beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

b=${1:?usage: bench.sh BUILD_FOLDER [RUNS]}
runs=${2:-7}
cufrag=$b/cufrag
work=build/bench
out=results/performance
shared=${SHARED_TRACES:-../shared/traces}
mkdir -p "$work" "$out"
rows=$work/bench.csv
echo 'what,subject,value,unit,runs,spread_ratio' > "$rows"

measure() { python3 scripts/measure.py -n "$runs" "$@"; }
# row WHAT SUBJECT VALUE UNIT [SPREAD]
row() {
	printf '%s,"%s",%s,%s,%s,%s\n' "$1" "$2" "$3" "$4" "$runs" "${5:-}" >> "$rows"
	printf '  %-28s %-34s %12s %s\n' "$1" "$2" "$3" "$4"
}
calc() { awk "BEGIN { printf \"%.4g\", $1 }"; }
whole() { awk "BEGIN { printf \"%.0f\", $1 }"; }

plain_pickle() { # the recording, decompressed once
	local name=$1
	[ -e "$shared/torch/$name.pickle.xz" ] || return 1
	[ -e "$work/$name.pickle" ] || { xz -dc "$shared/torch/$name.pickle.xz" > "$work/$name.tmp" && mv "$work/$name.tmp" "$work/$name.pickle"; }
	echo "$work/$name.pickle"
}

events_of() {
	"$cufrag" info "$1" --json - | python3 -c 'import json, sys; print(sum(d["events_count"] for d in json.load(sys.stdin)["devices"]))'
}

bench_reading() {
	local file=$1 name load ours theirs spread spread_theirs
	name=$(basename "$file")
	load='import pickle, sys; f = open(sys.argv[1], "rb"); pickle.load(f)'
	# in turn, so that both see the same machine
	read -r ours spread _ < <(measure "$cufrag" info "$file" | cut -f 1,2)
	read -r theirs spread_theirs _ < <(measure python3 -c "$load" "$file" | cut -f 1,2)
	local empty
	read -r empty _ < <(measure python3 -c 'import pickle' | cut -f 1,2)
	row read_pickle_s "$name" "$ours" s "$spread"
	row python_pickle_load_s "$name" "$(calc "$theirs - $empty")" s "$spread_theirs"
	row read_pickle_over_python "$name" "$(calc "$ours / ($theirs - $empty)")" ratio
	row read_pickle_rate "$name" "$(whole "$(stat -c %s "$file") / $ours / 1048576")" MiB/s
}

bench_replay() {
	local file=$1 name line host spread ops spread_ops kib
	name=$(basename "$file")
	line=$(measure -f results.0.host.host_ns_per_op,results.0.host.events_per_s "$cufrag" replay "$file" --policy pytorch --json -)
	IFS=$'\t' read -r _ _ kib _ host spread ops spread_ops <<< "$line"
	row replay_ns_per_op "$name pytorch" "$(calc "$host")" ns "$spread"
	row replay_events_per_s "$name pytorch" "$(whole "$ops")" 1/s "$spread_ops"
	row replay_peak_mib "$name pytorch" "$(calc "$kib / 1024")" MiB
}

bench_import() {
	local file=$1 name kib seconds spread
	name=$(basename "$file")
	IFS=$'\t' read -r seconds spread kib _ < <(measure "$cufrag" import "$file" -o "$work/imported.cft")
	row import_s "$name" "$seconds" s "$spread"
	row import_peak_mib "$name" "$(calc "$kib / 1024")" MiB
	row import_output_mib "$name" "$(calc "$(stat -c %s "$work/imported.cft") / 1048576")" MiB
}

bench_cft() {
	local file=$1 name=$2 events seconds spread
	events=$(events_of "$file")
	IFS=$'\t' read -r seconds spread _ < <(measure "$cufrag" info "$file")
	row cft_read_s "$name" "$seconds" s "$spread"
	row cft_read_events_per_s "$name" "$(whole "$events / $seconds")" 1/s
}

policies() { "$cufrag" list policies --json - | python3 -c 'import json, sys; [print(p["name"]) for p in json.load(sys.stdin)["policies"] if not p["adaptor"]]'; }

bench_policies() {
	local file=$1 name line host spread refused
	name=$(basename "$file" .cft)
	for policy in $(policies) pytorch:expandable_segments:True; do
		line=$(measure -f results.0.host.host_ns_per_op,results.0.ooms_count "$cufrag" replay "$file" --policy "$policy" --on-oom=skip --json -) || continue
		IFS=$'\t' read -r _ _ _ _ host spread refused _ <<< "$line"
		# what is refused costs little: say so
		[ "$refused" = 0 ] && refused='' || refused=" ($refused refused)"
		row policy_ops_per_s "$name $policy$refused" "$(whole "1e9 / $host")" 1/s "$spread"
	done
}

describe() {
	local cpu
	cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	cat <<-END
	# Performance

	| | |
	|---|---|
	| command | \`make bench\` (scripts/bench.sh, median of $runs runs after one warm-up, one process at a time) |
	| machine | ${cpu:-unknown processor}, $(nproc) processors, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo) |
	| system | $(. /etc/os-release 2> /dev/null && echo "${PRETTY_NAME:-}"), $(uname -sm), $(gcc --version | head -n 1), $(python3 --version) |
	| date, version | $(date -u +%Y-%m-%d), $("$cufrag" --version) |

	The spread is (largest - smallest) / median of the runs; figures of a shared machine move. Times of reading are
	those of the whole process, start included; of Python's load, the process less that of an
	empty one. Peak memory is the largest resident set of the process.

	| what | subject | value | unit | spread |
	|---|---|---|---|---|
	END
	sed 1d "$rows" | sed 's/^\([^,]*\),"\([^"]*\)",\([^,]*\),\([^,]*\),[^,]*,\(.*\)$/| \1 | \2 | \3 | \4 | \5 |/'
}

main() {
	local serve varlen=traces/varlen.default.cft note=''
	command -v python3 > /dev/null || { echo 'bench: python3 is needed to compare with and to keep the clock' >&2; exit 1; }
	if serve=$(plain_pickle serve.default); then
		bench_reading "$serve"
		bench_import "$serve"
		bench_cft "$work/imported.cft" serve.default.cft
		bench_replay "$serve"
	else
		note='The big recordings were not at hand: bundled traces stand in, and the rows on pickles are left out.'
		echo "bench: $note" >&2
		serve=$(ls traces/serve*.cft | head -n 1)
		bench_cft "$serve" "$(basename "$serve")"
		bench_replay "$serve"
	fi
	[ -e "$varlen" ] || varlen=$(ls traces/varlen*.cft | head -n 1)
	bench_policies "$varlen"
	{ describe; [ -z "$note" ] || printf '\n%s\n' "$note"; } > "$work/README.md"
	mv "$rows" "$out/bench.csv"
	mv "$work/README.md" "$out/README.md"
	echo "bench: wrote $out/bench.csv and $out/README.md"
}

main
