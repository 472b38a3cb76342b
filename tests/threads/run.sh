#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same command with one thread and with several must write the same bytes. Under
# ThreadSanitizer (make tsan) a race ends the program with a status of its own; one thread has none.
#	run.sh PROGRAM [races]		races: with several threads only, for that sanitizer
# Last line: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
program=${1:?usage: run.sh PROGRAM [races]}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 counts='1 2 5'
[ -z "${FRAG_TEST_QUICK:-}" ] || counts='1 5'
[ "${2:-}" != races ] || counts=5

fail() { echo "failed: $*"; failed=$((failed + 1)); }

# same NAME COMMAND ARGUMENT...: its JSON with each number of threads
same() {
	local name=$1 first=${counts%% *} n
	shift
	for n in $counts; do
		if ! "$program" "$@" --threads "$n" --json "$scratch/$n" > "$scratch/out" 2>&1; then
			fail "$name, $n threads"
			tail -n 40 "$scratch/out"
			return
		fi
		# the command line and the number of threads are echoed
		sed -i 's/"command_line": .*//; s/"threads": .*//' "$scratch/$n"
		if ! cmp -s "$scratch/$first" "$scratch/$n"; then
			fail "$name: $n threads give something else than $first"
			diff "$scratch/$first" "$scratch/$n" | head -n 20
			return
		fi
	done
	passed=$((passed + 1))
}

# known COMMAND: does this build have it?
known() { "$program" --help | grep -q "^  $1 "; }

same 'compare, every policy' compare traces/seeddemo.default.cft traces/mempool.default.cft traces/streams.default.cft \
	--policies all --on-oom=skip --no-host
same 'compare, two devices' compare traces/modelpar.default.cft --no-host
same 'compare, more threads than policies' compare traces/gnn.default.cft --policy native --no-host
# the reading thread and the replaying one
same 'replay, streamed' replay traces/varlen.default.cft --policy pytorch --stream --no-host
same 'compare, streamed' compare traces/modelpar.default.cft --policies 'pytorch;buddy;async' --stream --no-host
if known fit; then same fit fit traces/gnn.default.cft; fi
if known tune; then same tune tune traces/gnn.default.cft; fi

# charts are drawn at the same time
if "$program" compare traces/gnn.default.cft --no-host --threads 4 --out "$scratch/report" > "$scratch/out" 2>&1 &&
	[ -s "$scratch/report/report.html" ]; then
	passed=$((passed + 1))
else
	fail 'report with 4 threads'
	tail -n 40 "$scratch/out"
fi

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
