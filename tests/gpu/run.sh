#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole replays on card 0:
#	run.sh PROGRAM
# Every policy that can run on its own with contents verified, on a short trace with several streams
# and one with a private pool; the device calls of those that do not look at the time are those on
# the simulated card (`lab`, beside the program); what verify says of differences. Skipped without a
# card. Last line: "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${1:?usage: run.sh PROGRAM}")
passed=0 failed=0
[[ $("$program" list devices) =~ cuda:0\ .*GiB ]] && [ -x "${program%/*}/lab" ] ||
	{ echo 'skipped: no card, or no lab'; echo '0 passed, 0 failed, 1 skipped'; exit; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check NAME COMMAND...
check() {
	local name=$1
	shift
	if "$@" > "$scratch/said" 2>&1; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		echo "FAILED: $name"
		tail -n 20 "$scratch/said"
	fi
}

contents() { "${program%/*}/lab" contents -o "$scratch/rows" "$@" && [ "$(wc -l < "$scratch/rows")" -gt 25 ]; }
calls_as_on_sim() {
	"${program%/*}/lab" sim --rounds 1 -o "$scratch/rows" --policies \
		'pytorch;pytorch:expandable_segments:True;buddy;native;rmm-pool' "$@" 2> "$scratch/summary"
	cat "$scratch/summary" "$scratch/rows"
	grep -q 'simulated card 5; the same peak 5;' "$scratch/summary"
}
# CAUSE TRACE OPTION...: devices are as recorded, or differ by this
differs_by() {
	local cause=$1
	shift
	"$program" verify --device cuda --json - --quiet "$@" > "$scratch/document"
	grep -E '^ {6}"(identical|difference_cause(_text)?)"' "$scratch/document"
	[ "$(grep -cE '^ {6}("identical": true|"difference_cause": "'"$cause"'")' "$scratch/document")" = \
		"$(grep -cE '^ {6}"identical": ' "$scratch/document")" ]
}

for trace in seeddemo mempool cudagraph; do check "contents of $trace" contents "traces/$trace.default.cft"; done
check 'calls as on the simulated card' calls_as_on_sim traces/leak.frames.cft
for trace in leak.frames modelpar.default gnn.expandable streams.default; do
	check "differences of $trace" differs_by addresses "traces/$trace.cft"
done
# and what other settings make is not said to be made by addresses
check 'differences of other settings' differs_by input traces/gnn.default.cft --conf max_split_size_mb:128

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
