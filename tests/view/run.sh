#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cufrag view` writes: run.sh PROGRAM
# data.py reads pages without a browser and compares every event; moves.py uses them in headless Chromium (skipped without
# it, and in the quick tests). Last line: "N passed, N failed, N skipped".
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
traces=$(cd "$here/../../traces" && pwd)
export LC_ALL=C.UTF-8

program=${1:?usage: run.sh PROGRAM}
[ -d "$program" ] && program=$program/cufrag
program=$(realpath "$program")
total=(0 0 0)

# add: the last line of a script on standard input, the rest is shown
add() {
	local line last='' passed failed skipped _
	while IFS= read -r line; do
		[ -z "$last" ] || echo "$last"
		last=$line
	done
	read -r passed _ failed _ skipped _ <<< "$last"
	if [[ $passed =~ ^[0-9]+$ && $failed =~ ^[0-9]+$ && $skipped =~ ^[0-9]+$ ]]; then
		total=($((total[0] + passed)) $((total[1] + failed)) $((total[2] + skipped)))
	else
		echo "FAILED: $last"
		total[1]=$((total[1] + 1))
	fi
}

small=("$traces"/{seeddemo,leak,gnn,streams,cudagraph,mempool,oomcap}*.cft)
[ -n "${FRAG_TEST_QUICK:-}" ] && small=("$traces"/{seeddemo,leak,streams,cudagraph}*.cft "$traces/gnn.late.cft")
add < <(timeout 600 "$here/data.py" "$program" "${small[@]}" 2>&1)
if [ -n "${FRAG_TEST_QUICK:-}" ]; then
	echo 'skipped: the browser is left out of the quick tests'
	add <<< '0 passed, 0 failed, 1 skipped'
elif ! command -v chromium > /dev/null && ! command -v google-chrome > /dev/null; then
	echo 'skipped: no chromium (Debian package chromium)'
	add <<< '0 passed, 0 failed, 1 skipped'
else
	add < <(timeout 600 "$here/moves.py" "$program" "$traces"/{leak.frames,gnn.late}.cft 2>&1)
fi
echo "${total[0]} passed, ${total[1]} failed, ${total[2]} skipped"
[ "${total[1]}" = 0 ] && [ "${total[0]}" -gt 0 ]
