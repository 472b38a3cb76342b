#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of a BUILD=fuzz folder for some seconds, as many at a time as there are
# processors, starting from the corpus in git, and .cft from their grammar:
#	fuzz.sh BUILD_FOLDER [SECONDS]
# New inputs stay in BUILD_FOLDER/corpus/NAME; one that crashes is copied to BUILD_FOLDER/crash-…
# and named. The exit status is 1 if anything crashed, leaked or hung.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

b=${1:?usage: fuzz.sh BUILD_FOLDER [SECONDS]}
seconds=${2:-20}
# AddressSanitizer keeps freed memory back, 256 MiB of it unless told, and libFuzzer's limit counts
# that too: with so much of it a target that holds 125 MiB reached 512 now and then.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=64

fuzz() {
	local name=$1 log=$b/fuzz-$1.log
	mkdir -p "$b/corpus/$name"
	if FUZZ=$name "$b/tests/fuzz/fuzz" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -max_len=65536 \
		-print_final_stats=1 -artifact_prefix="$b/crash-$name-" "$b/corpus/$name" "tests/fuzz/corpus/$name" > "$log" 2>&1; then
		printf '  %-16s %s executions in %s s, nothing found\n' "$name" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
	else
		echo "fuzz: $name failed, see $log" >&2
		tail -n 40 "$log" >&2
		return 1
	fi
}

mkdir -p "$b/corpus/cft" "$b/corpus/whole"
python3 tests/fuzz/grammar.py "$b/corpus" 200 || exit
status=0 pids=()
for name in tests/fuzz/corpus/*; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	fuzz "${name##*/}" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
exit $status
