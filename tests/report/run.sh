#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Opens report.html in a real browser, headless Chromium:
#	run.sh PROGRAM
# Opens pages of one trace, of one that runs out of memory, of two devices, of several traces, and of other commands at
# several widths, dark, and as printed: the first page in all ways, the others in two (every night: in all). In a copy
# of each page probe.html looks for script errors, images that did not load, anything that sticks out, labels that leave
# their chart, and text that is hard to see. Links must lead to files. Skipped without Chromium or gnuplot.
# Last line: "N passed, N failed, N skipped".
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export LC_ALL=C.UTF-8

program=${1:?usage: run.sh PROGRAM}
[ -d "$program" ] && program=$program/cufrag
program=$(realpath "$program")
passed=0 failed=0

skip() {
	echo "skipped: $1"
	echo "$passed passed, $failed failed, 1 skipped"
	[ "$failed" = 0 ]
	exit
}
[ -n "${FRAG_TEST_QUICK:-}" ] && skip 'the browser is left out of the quick tests'
# charts keep every peak, and librsvg draws them: no browser is needed for that
peaks=$("$here/peaks.py" "$program" "$root"/traces/*.cft)
last=${peaks##*$'\n'}
echo "$peaks" >&2
passed=$(cut -d ' ' -f 1 <<< "$last") failed=$(cut -d ' ' -f 3 <<< "$last")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip 'no chromium (Debian package chromium)'
command -v gnuplot > /dev/null || skip 'no gnuplot'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check NAME: what is on standard input is what is wrong
check() {
	local wrong
	wrong=$(cat)
	if [ -z "$wrong" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n%s\n' "$1" "$wrong"
	fi
}

# links PAGE: the files it names are there, and nothing comes from elsewhere
links() {
	grep -oE '(href|src)="[^"#]*"' "$1" | sed 's/^[a-z]*="//; s/"$//' | sort -u | while read -r link; do
		case $link in
		http://www.w3.org/*) ;;
		*://* | /*) echo "leads elsewhere: $link" ;;
		*) [ -s "$(dirname "$1")/$link" ] || echo "leads nowhere: $link" ;;
		esac
	done
	grep -oE 'url\((https?:|//)[^)]*\)|@import' "$1"
}

# small PAGE: on a telephone of 400 pixels (no window is narrower than 500, so the page says how wide
# its charts come out at 400): no letter of a chart is below 9 pixels
small() {
	grep -oE '<svg [^>]*viewBox="0 0 [0-9]+' "$1" | grep -oE '[0-9]+$' | awk '$1 > 584 { print "    a chart is " $1 " wide" }'
	grep -oE 'font-size="[0-9.]+"' "$1" | grep -oE '[0-9.]+' | sort -un |
		awk '{ at400 = $1 * 384 / 560; if (at400 < 9) print "    letters of " $1 " are " at400 " pixels at 400" }'
}

# probe PAGE WIDTH light|dark [print]; print: as it comes out on paper of that width
probe() {
	local copy=$scratch/probe.html scheme=() dom
	[ "$3" = dark ] && scheme=(--force-dark-mode)
	# the policy of an interactive page allows no other script: not even the probe
	sed "s|<meta http-equiv=\"Content-Security-Policy\"[^>]*>||;s|@media ${4:-nothing}{|@media all{|;s|<head>|<head><script>window.probe_errors = []; addEventListener('error', e => probe_errors.push('script error: ' + (e.message \|\| e.target.src)), true);</script>|" "$1" |
		awk -v probe="$here/probe.html" '/<\/body>/ { while ((getline line < probe) > 0) print line } { print }' > "$copy"
	dom=$(timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" \
		--window-size="$2,900" "${scheme[@]}" --dump-dom "file://$copy" 2> "$scratch/browser.log" | sed -n '/<pre id="probe">/,/<\/pre>/p')
	sed -n 's/^\(<pre id="probe">\)*WRONG /    /p' <<< "$dom"
	grep -q "LOOKED $2 $3 charts" <<< "$dom" || { echo "    not looked at: $(tail -n 2 "$scratch/browser.log")"; return; }
	grep -qE 'labels 0 ' <<< "$dom" && grep -qE 'charts [1-9]' <<< "$dom" && echo '    the charts have no labels'
	grep -qE 'tables 0' <<< "$dom" && echo '    the page has no table'
}

all_ways=('1280 light' '800 light' '500 light' '1280 dark' '680 light print')
ways=('500 light' '1280 dark')
[ -z "${FRAG_TEST_NIGHTLY:-}" ] || ways=("${all_ways[@]}")

# page NAME PAGE CHARTS WAY...
page() {
	local name=$1 page=$2 least=$3 count how
	shift 3
	check "$name: links" < <(links "$page")
	count=$(grep -c '<figure>' "$page")
	check "$name: charts" < <([ "$count" -ge "$least" ] || echo "    $count charts, not $least")
	# shellcheck disable=SC2086 # words
	for how; do check "$name: $how" < <(probe "$page" $how); done
	check "$name: letters at 400 pixels" < <(small "$page")
}

# sheet NAME COMMAND…: a page of one of the other commands, whose tables are plain text; each title is a finding
sheet() {
	local name=$1 one how
	shift
	"$program" "$@" --out "$name" > log 2>&1 || [ "$name" = fleet ] || { echo "FAILED: cufrag $*"; cat log; failed=$((failed + 1)); }
	one=$(ls "$name"/*.html)
	# shellcheck disable=SC2086 # words
	for how in "${ways[@]}"; do check "$name: $how" < <(probe "$one" $how | grep -v 'has no table'); done
	check "$name: letters at 400 pixels" < <(small "$one")
	check "$name: titles" < <(grep -oE 'aria-label="[^"]*"|<text[^>]*font-weight="bold"[^>]*>[^<]*' "$one" | grep -iE 'peak memory by|by call site$|before and after' | sed 's/^/    no finding: /')
}

cd "$scratch" || exit 1
make_report() {
	"$program" compare "$@" > log 2>&1 || { echo "FAILED: cufrag compare $*"; cat log; failed=$((failed + 1)); }
}
traces=$root/traces
make_report "$traces/gnn.default.cft" --policies 'all; pytorch:roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:512' --out many
make_report "$traces/leak.frames.cft" --capacity 3G --pdf --out oom
make_report "$traces/modelpar.default.cft" --policies 'pytorch; pytorch:expandable_segments:True' --formats svg --out devices
make_report "$traces/leak.frames.cft" "$traces/streams.default.cft" --policies 'pytorch; buddy' --formats svg --out several
page 'many policies' many/report.html 10 "${all_ways[@]}"
page 'out of memory' oom/report.html 8 "${ways[@]}"
page 'two devices' devices/report.html 18 "${ways[@]}"
page 'several traces' several/report.html 1 "${ways[@]}"
sheet explain explain "$traces/leak.frames.cft"
sheet diff diff "$traces/gnn.default.cft" "$traces/gnn.expandable.cft"
sheet scale scale --at 2,4,8 "$root"/tests/cli/data/scale/batch{2,4,8}.cft --to 32
"$program" sweep "$traces"/{leak.frames,gnn.default,modelpar.default}.cft -o fleet.sqlite > log 2>&1
sheet fleet fleet fleet.sqlite
check 'one of several: links' < <(links several/leak.frames/report.html)
check 'all charts in one file' < <([ "$(head -c 5 oom/charts.pdf)" = %PDF- ] || echo '    charts.pdf is none')
check 'what to set' < <(grep -q 'export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True' devices/report.html || echo '    no line to export')

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
