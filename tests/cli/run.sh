#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of the command line:
#	run.sh [--rewrite] PROGRAM [CASE...]	CASE_JOBS (1) of them at a time
# A case is tests/cli/cases/NAME.sh, run by sh in an empty folder of its own with
#	CUFRAG (the program), TRACES (the bundled traces), ROOT (of the tree),
#	SHARED (the big recordings, may not exist)
# and beside it what must come out:
#	NAME.exit      the exit status (absent: 0)
#	NAME.stdout    exactly this, or NAME.stdout.glob (neither: nothing at all)
#	NAME.stderr    the same for standard error
# In a .glob file a line "..." stands for any lines, other lines are shell patterns.
# A case that exits with 77 is skipped; its standard error says why. Files that
# a case leaves behind are listed at the end of its output, by the case itself.
# --rewrite writes exit status and exact output from what came out (never a .glob file).
# Last line: "N passed, N failed, N skipped".
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS NO_COLOR POSIXLY_CORRECT ARGP_HELP_FMT

rewrite=0
[ "${1:-}" = --rewrite ] && { rewrite=1; shift; }
program=${1:?usage: run.sh [--rewrite] PROGRAM [CASE...]}
shift
[ -d "$program" ] && program=$program/cufrag
[ -x "$program" ] || { echo "run.sh: no program '$program'"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
CUFRAG=$(realpath "$program")
ROOT=$(realpath "$here/../..")
TRACES=$ROOT/traces
SHARED=$(cd "$ROOT" && realpath -m "${SHARED_TRACES:-../shared/traces}")
export CUFRAG ROOT TRACES SHARED

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The pattern of a .glob file: lines of "..." become "*". A "..." line may also stand for none.
pattern_of() {
	local text='' line
	while IFS= read -r line || [ -n "$line" ]; do
		if [ "$line" = ... ]; then text+='*'; else text+="$line"$'\n'; fi
	done < "$1"
	printf '%s' "$text"
}

# $1: case file without ending, $2: stdout or stderr, $3: what came out. Says what is wrong.
compare() {
	local want=$1.$2 got=$3 text
	if [ -e "$want.glob" ]; then
		text=$(cat "$got"; echo .)
		# shellcheck disable=SC2053 # it is a pattern
		[[ ${text%.} == $(pattern_of "$want.glob") ]] && return 0
		# a final "..." has lost nothing to $( ), a last line has lost its end
		[[ ${text%$'\n'.} == $(pattern_of "$want.glob") ]] && return 0
		echo "$2 does not match $(basename "$want").glob:"
		sed 's/^/    /' "$got"
		return 1
	fi
	[ -e "$want" ] || want=/dev/null
	cmp -s "$want" "$got" && return 0
	echo "$2 differs (- wanted, + got):"
	diff -u "$want" "$got" | tail -n +3 | sed 's/^/    /'
	return 1
}

rewrite_case() {
	local base=$1 dir=$2 status=$3 kind
	rm -f "$base.exit"
	[ "$status" -ne 0 ] && echo "$status" > "$base.exit"
	for kind in stdout stderr; do
		[ -e "$base.$kind.glob" ] && continue
		rm -f "$base.$kind"
		[ -s "$dir.$kind" ] && cp "$dir.$kind" "$base.$kind"
	done
}

passed=0 failed=0 skipped=0
# one that no other worker has begun
run_case() {
	local base=$1 name dir status want=0 wrong=''
	name=$(basename "$base")
	dir=$scratch/$name
	if ! mkdir "$dir" 2> /dev/null; then
		[ -d "$dir" ] || failed=$((failed + 1))
		return
	fi
	(cd "$dir" && exec sh "$base.sh") > "$dir.stdout" 2> "$dir.stderr" < /dev/null
	status=$?
	if [ $status -eq 77 ]; then
		skipped=$((skipped + 1))
		echo "skipped: $name: $(tail -n 1 "$dir.stderr")"
		return
	fi
	[ $rewrite -eq 1 ] && rewrite_case "$base" "$dir" $status
	[ -e "$base.exit" ] && want=$(cat "$base.exit")
	[ $status -eq "$want" ] || wrong+="exit status $status, not $want"$'\n'
	wrong+=$(compare "$base" stdout "$dir.stdout")
	[ -n "$wrong" ] && wrong+=$'\n'
	wrong+=$(compare "$base" stderr "$dir.stderr")
	if [ -z "$wrong" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n%s\n' "$name" "$wrong"
	fi
	find "$dir" -mindepth 1 -delete
}

names=("$@")
if [ $# -eq 0 ]; then
	names=(hostile_cost signals stream_same widths) # take long
	for file in "$here"/cases/*.sh; do names+=("$(basename "$file" .sh)"); done
fi
work() {
	for name in "${names[@]}"; do run_case "$here/cases/$name"; done
	echo "$passed $failed $skipped" > "$scratch/$1.count"
}
for ((worker = 1; worker < ${CASE_JOBS:-1}; worker++)); do work $worker & done
work 0
wait
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p, f, s }' "$scratch"/*.count)
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
