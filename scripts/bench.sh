#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures speed and memory on this machine, against the targets where there are some:
#	bench.sh [--long] BUILD_FOLDER [RUNS]
# a. replay of serve under pytorch, expandable segments and null, the trace in memory
# b. a PyTorch snapshot into memory, against Python's pickle.load of the same file in the same run
# c. .cft into memory; bytes per event of the bundled traces
# d. a generated trace of 20 M events (--long: 100 M), replayed while it is read: speed against the same in
#    memory, peak memory, and that of a fifth of the length
# e. compare with 12 policies on one thread and on two, in turn, and is the output the same
# f. --help and list
# g. every policy on one trace; import
# The serve recording comes from SHARED_TRACES when it is there (70 MiB plain); else the bundled
# .cft is used and the rows on pickles are left out. Medians of RUNS (default 7) after one warm-up; python3 runs
# the clock. With valgrind the instructions per unit of work are put beside. Writes
# targets.csv, bench.csv and README.md in results/performance/ (BENCH_OUT).
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

long_events=20M short_events=4M
[ "${1:-}" = --long ] && { long_events=100M short_events=20M; shift; }
b=${1:?usage: bench.sh [--long] BUILD_FOLDER [RUNS]}
runs=${2:-7}
cufrag=$b/cufrag
work=$b/bench
out=${BENCH_OUT:-results/performance}
shared=${SHARED_TRACES:-../shared/traces}
mkdir -p "$work" "$out"
rows=$work/bench.csv targets=$work/targets.csv
echo 'what,subject,value,unit,runs,spread_ratio' > "$rows"
echo 'work,subject,target,measured,unit,spread_ratio,instructions,met' > "$targets"

measure() { python3 scripts/build/measure.py -n "$runs" "$@"; }
calc() { awk "BEGIN { printf \"%.4g\", $1 }"; }
whole() { awk "BEGIN { printf \"%.0f\", $1 }"; }
field() { cut -f "$1"; }
# row WHAT SUBJECT VALUE UNIT [SPREAD]
row() {
	printf '%s,"%s",%s,%s,%s,%s\n' "$1" "$2" "$3" "$4" "$runs" "${5:-}" >> "$rows"
	printf '  %-28s %-34s %12s %s\n' "$1" "$2" "$3" "$4"
}
# target WORK SUBJECT OPERATOR TARGET MEASURED UNIT [SPREAD [INSTRUCTIONS]]; OPERATOR >= or <=
target() {
	local met
	met=$(awk "BEGIN { print ($5 $3 $4) ? \"yes\" : \"no\" }")
	printf '"%s","%s",%s %s,%s,%s,%s,"%s",%s\n' "$1" "$2" "$3" "$4" "$5" "$6" "${7:-}" "${8:-}" "$met" >> "$targets"
	printf '  %-40s %-28s %s %-10s %12s %-10s %s\n' "$1" "$2" "$3" "$4" "$5" "$6" "$met"
}

# Instructions of a command less those of an empty one, divided by N: instructions N UNIT COMMAND...
executed() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 > /dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
instructions() {
	local n=$1 unit=$2
	shift 2
	command -v valgrind > /dev/null || return 0
	[ -n "${empty_run:-}" ] || empty_run=$(executed "$cufrag" --version)
	echo "$(calc "($(executed "$@") - $empty_run) / $n") per $unit"
}

plain_pickle() { # the recording, decompressed once
	local name=$1
	[ -e "$shared/torch/$name.pickle.xz" ] || return 1
	[ -e "$work/$name.pickle" ] || { xz -dc "$shared/torch/$name.pickle.xz" > "$work/$name.tmp" && mv "$work/$name.tmp" "$work/$name.pickle"; }
	echo "$work/$name.pickle"
}

events_of() {
	"$cufrag" info "$1" --json - | python3 -c 'import json, sys; print(sum(d["events_count"] for d in json.load(sys.stdin)["devices"]))'
}

# ---- a. replay, in memory. Evidence left out: settling a recording is no part of it.

bench_replay() {
	local plain=$work/serve.plain.cft policy least line seconds kib rate spread n
	"$cufrag" import traces/serve.default.cft --no-evidence -o "$plain" > /dev/null
	n=$(events_of "$plain")
	while read -r policy least; do
		line=$(measure -f results.0.host.events_per_s,results.0.host.host_ns_per_op "$cufrag" replay "$plain" --policy "$policy" --stream=never --threads 1 --json -)
		IFS=$'\t' read -r seconds _ kib _ rate spread _ <<< "$line"
		target "replay in memory, events/s" "serve.default $policy" '>=' "$least" "$(whole "$rate")" 1/s "$spread" \
			"$(instructions "$n" event "$cufrag" replay "$plain" --policy "$policy" --stream=never --threads 1 --json /dev/null)"
		row replay_process_s "serve.default $policy" "$seconds" s
		row replay_peak_mib "serve.default $policy" "$(calc "$kib / 1024")" MiB
	done <<-END
		pytorch 30000000
		pytorch:expandable_segments:True 20000000
		null 100000000
	END
}

# ---- b, c. into memory

bench_pickle() {
	local file=$1 name ours theirs spread n size load
	name=$(basename "$file")
	load='
	import pickle, statistics, sys, time
	def once():
	    with open(sys.argv[1], "rb") as f:
	        begin = time.process_time()
	        kept = pickle.load(f)
	        return time.process_time() - begin
	once()
	print(statistics.median(once() for _ in range(int(sys.argv[2]))))'
	IFS=$'\t' read -r ours spread n size < <("$b/bench_read" "$runs" "$file")
	theirs=$(python3 -c "${load//$'\n\t'/$'\n'}" "$file" "$runs")
	row read_pickle_s "$name" "$ours" s "$spread"
	row python_pickle_load_s "$name" "$theirs" s
	target 'pickle to memory, part of pickle.load' "$name" '<=' 0.1 "$(calc "$ours / $theirs")" ratio "$spread"
	target 'pickle to memory, MB/s' "$name" '>=' 700 "$(whole "$size / $ours / 1e6")" MB/s "$spread" \
		"$(instructions "$n" event "$cufrag" info "$file" --json /dev/null)"
}

bench_cft() {
	local file=traces/serve.default.cft seconds spread n worst=0 per trace all=0 bytes=0
	IFS=$'\t' read -r seconds spread n _ < <("$b/bench_read" "$runs" "$file")
	target '.cft to memory, events/s' serve.default '>=' 50000000 "$(whole "$n / $seconds")" 1/s "$spread" \
		"$(instructions "$n" event "$cufrag" info "$file" --json /dev/null)"
	for trace in traces/*.cft; do
		n=$(events_of "$trace")
		per=$(calc "$(stat -c %s "$trace") / $n")
		all=$((all + n)) bytes=$((bytes + $(stat -c %s "$trace")))
		row cft_bytes_per_event "$(basename "$trace" .cft) ($n events)" "$per" B
		# traces of a few events are all head and evidence
		[ "$n" -lt 1000 ] || worst=$(awk "BEGIN { print ($per > $worst) ? $per : $worst }")
	done
	target '.cft with evidence, bytes per event' 'all bundled traces together' '<=' 4 "$(calc "$bytes / $all")" B
	target '.cft with evidence, bytes per event' 'largest of those from 1000 events' '<=' 4 "$worst" B
}

# ---- d. streamed

bench_streamed() {
	local file=$work/long.cft short=$work/short.cft n streamed memory kib short_kib rate spread once=$runs
	"$cufrag" gen repeat traces/serve.default.cft --events "$long_events" -o "$file" > /dev/null
	"$cufrag" gen repeat traces/serve.default.cft --events "$short_events" -o "$short" > /dev/null
	n=$(events_of "$file")
	runs=$(( runs > 3 ? 3 : runs ))
	{
		IFS=$'\t' read -r streamed spread kib _
		IFS=$'\t' read -r _ _ _ _ rate _
		IFS=$'\t' read -r _ _ short_kib _
	} < <(measure -f results.0.host.events_per_s \
		"$cufrag" replay "$file" --policy pytorch --stream --json - +++ \
		"$cufrag" replay "$file" --policy pytorch --stream=never --json - +++ \
		"$cufrag" replay "$short" --policy pytorch --stream --json -)
	memory=$(calc "$n / $rate")
	row streamed_process_s "$n events" "$streamed" s "$spread"
	row streamed_events_per_s "$n events" "$(whole "$n / $streamed")" 1/s "$spread"
	row in_memory_replay_s "$n events, reading not counted" "$memory" s
	target 'streamed, of the speed in memory' "$n events pytorch" '>=' 0.8 "$(calc "$memory / $streamed")" ratio "$spread" \
		"$(instructions "$(events_of "$short")" event "$cufrag" replay "$short" --policy pytorch --stream --threads 1 --json /dev/null)"
	target 'streamed, peak memory' "$n events pytorch" '<=' 256 "$(calc "$kib / 1024")" MiB
	target 'streamed, peak memory over a fifth of the length' "$n events pytorch" '<=' 1.1 "$(calc "$kib / $short_kib")" ratio
	rm -f "$file" "$short"
	runs=$once
}

# ---- e. threads

twelve='pytorch;pytorch:expandable_segments:True;pytorch:max_split_size_mb:128;native;async;vmm;bfc;buddy;tlsf;cupy;rmm-pool;ggml'
bench_threads() {
	local command=("$cufrag" compare traces/varlen.default.cft --policies "$twelve" --optimum bound --no-host) one two spread
	{
		IFS=$'\t' read -r one _
		IFS=$'\t' read -r two spread _
	} < <(measure "${command[@]}" --threads 1 --csv "$work/one.csv" +++ "${command[@]}" --threads 2 --csv "$work/two.csv")
	cmp -s "$work/one.csv" "$work/two.csv" || { echo 'bench: the output depends on the number of threads' >&2; exit 1; }
	row compare_12_s 'varlen.default, 1 thread' "$one" s
	row compare_12_s 'varlen.default, 2 threads' "$two" s "$spread"
	target 'compare, 2 threads over 1' 'varlen.default, 12 policies' '>=' 1.8 "$(calc "$one / $two")" ratio "$spread"
}

# ---- f. small commands

bench_small() {
	local seconds spread command
	for command in --help 'list policies' 'list metrics' 'list gpus'; do
		# shellcheck disable=SC2086 # words
		IFS=$'\t' read -r seconds spread _ < <(measure "$cufrag" $command)
		# shellcheck disable=SC2086
		target 'start to end, ms' "cufrag $command" '<=' 10 "$(calc "$seconds * 1000")" ms "$spread" "$(executed "$cufrag" $command) in all"
	done
}

# ---- g. the rest

bench_import() {
	local file=$1 name kib seconds spread
	name=$(basename "$file")
	IFS=$'\t' read -r seconds spread kib _ < <(measure "$cufrag" import "$file" -o "$work/imported.cft")
	row import_s "$name" "$seconds" s "$spread"
	row import_peak_mib "$name" "$(calc "$kib / 1024")" MiB
	row import_output_mib "$name" "$(calc "$(stat -c %s "$work/imported.cft") / 1048576")" MiB
}

policies() { "$cufrag" list policies --json - | python3 -c 'import json, sys; [print(p["name"]) for p in json.load(sys.stdin)["policies"] if not p["adaptor"]]'; }
is_linear() { "$cufrag" list policies --json - | python3 -c 'import json, sys; sys.exit(not any(p["linear"] for p in json.load(sys.stdin)["policies"] if p["name"] == sys.argv[1]))' "$1"; }

bench_policies() {
	local file=$1 name line host spread refused
	name=$(basename "$file" .cft)
	for policy in $(policies) pytorch:expandable_segments:True; do
		line=$(measure -f results.0.host.host_ns_per_op,results.0.ooms_count "$cufrag" replay "$file" --policy "$policy" --on-oom=skip --threads 1 --json - 2> /dev/null) || continue
		IFS=$'\t' read -r _ _ _ _ host spread refused _ <<< "$line"
		# what is refused costs little: say so
		[ "$refused" = 0 ] && refused='' || refused=" ($refused refused)"
		row policy_ops_per_s "$name $policy$refused" "$(whole "1e9 / $host")" 1/s "$spread"
		local least=5000000 rule=''
		if is_linear "$policy"; then
			least=3000000 rule=', linear by its rule'
		fi
		case $policy in
		null | pytorch*) ;;
		*) target 'replay, operations/s' "$name $policy$refused$rule" '>=' $least "$(whole "1e9 / $host")" 1/s "$spread" ;;
		esac
	done
}

# ---- the page

describe() {
	# shellcheck disable=SC1091 # the system's own
	cat <<-END
	# Performance

	| | |
	|---|---|
	| command | \`make bench\` (scripts/bench.sh, median of $runs runs after one warm-up, one process at a time) |
	| machine | $(scripts/build/machine.sh) |
	| system | $(. /etc/os-release 2> /dev/null && echo "${PRETTY_NAME:-}"), $(uname -sm), $(gcc --version | head -n 1), $(python3 --version) |
	| date, version | $(date -u +%Y-%m-%d), $("$cufrag" --version) |

	The spread is (largest - smallest) / median of the runs; figures of a shared machine vary, instructions
	(callgrind, the whole process minus an empty one) do not. Replays in memory: host time of the replay itself, of a trace
	without evidence. Reading: processor time inside of one process, warm, Python's and ours alike. Streamed: the whole process, against the replay alone of
	the same trace in memory. Peak memory is the largest resident set of the process.

	END
	printf '%s of %s targets are met (targets.csv). bench.csv has everything that was measured.\n' \
		"$(grep -c ',yes$' "$targets" || true)" "$(sed 1d "$targets" | wc -l)"
}

main() {
	local serve varlen=traces/varlen.default.cft note=''
	command -v python3 > /dev/null || { echo 'bench: python3 is needed to compare with and to keep the clock' >&2; exit 1; }
	command -v valgrind > /dev/null || note='There was no valgrind: instructions are left out. '
	bench_replay
	if serve=$(plain_pickle serve.default); then
		bench_pickle "$serve"
		bench_import "$serve"
	else
		note+='The big recordings were not at hand: the rows on pickles are left out.'
	fi
	[ -z "$note" ] || echo "bench: $note" >&2
	bench_cft
	bench_streamed
	bench_threads
	bench_small
	bench_policies "$varlen"
	{ describe; [ -z "$note" ] || printf '\n%s\n' "$note"; } > "$work/README.md"
	mv "$rows" "$out/bench.csv"
	mv "$targets" "$out/targets.csv"
	mv "$work/README.md" "$out/README.md"
	echo "bench: wrote targets.csv, bench.csv and README.md in $out"
}

main
