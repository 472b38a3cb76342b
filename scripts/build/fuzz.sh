#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of a BUILD=fuzz folder for some seconds each, starting from the corpus in git:
#	fuzz.sh BUILD_FOLDER [SECONDS]
# What it finds on the way stays in BUILD_FOLDER/corpus/NAME; an input that crashes is copied to
# BUILD_FOLDER/crash-… and named. Exit status 1 if anything crashed, leaked or hung.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

b=${1:?usage: fuzz.sh BUILD_FOLDER [SECONDS]}
seconds=${2:-20}
status=0 count=0
for source in tests/fuzz/fuzz_*.c; do
	[ -e "$source" ] || continue
	name=$(basename "$source" .c) name=${name#fuzz_}
	seeds=tests/fuzz/corpus/$name
	mkdir -p "$b/corpus/$name"
	count=$((count + 1))
	log=$b/fuzz-$name.log
	if "$b/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -max_len=65536 \
		-print_final_stats=1 -artifact_prefix="$b/crash-$name-" "$b/corpus/$name" "$seeds" > "$log" 2>&1; then
		printf '  %-16s %s executions in %s s, nothing found\n' "$name" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
	else
		status=1
		echo "fuzz: $name failed, see $log" >&2
		tail -n 40 "$log" >&2
	fi
done
[ $count -gt 0 ] || { echo 'fuzz: no targets in tests/fuzz' >&2; exit 1; }
exit $status
