#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Golden counts: what every policy reserves, refuses and asks of the driver on every bundled trace.
#	run.sh [--rewrite] PROGRAM [TRACE...]
# Compares with golden.csv, exactly; each row is a test. Rows that are new or gone are failures as
# well: a new policy or trace gets its rows by `make baseline`, and a changed number
# needs its reason in the commit. Traces named on the command line limit the comparison to them.
# Last line: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C

rewrite=0
[ "${1:-}" = --rewrite ] && { rewrite=1; shift; }
program=${1:?usage: run.sh [--rewrite] PROGRAM [TRACE...]}
shift
golden=tests/golden/golden.csv
policies='all; pytorch:expandable_segments:True; pytorch:max_split_size_mb:128; pytorch:roundup_power2_divisions:4; pytorch:garbage_collection_threshold:0.6'
columns='policy,trace,device_ordinal,completed,peak_reserved_bytes,ooms_count,driver_calls_count'

if [ $# -gt 0 ]; then traces=("$@"); else traces=(traces/*.cft); fi
if [ ! -e "${traces[0]}" ]; then
	echo 'golden: no bundled traces'
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi

# The wanted columns of a CSV by name, fields with commas in double quotes.
select_columns() {
	awk -v names="$columns" '
		function split_csv(line, out,  n, i, c, quoted, field) {
			n = 0; quoted = 0; field = ""
			for (i = 1; i <= length(line); i++) {
				c = substr(line, i, 1)
				if (c == "\"") quoted = !quoted
				else if (c == "," && !quoted) { out[++n] = field; field = "" }
				else field = field c
			}
			out[++n] = field
			return n
		}
		NR == 1 {
			n = split_csv($0, head)
			for (i = 1; i <= n; i++) at[head[i]] = i
			wanted = split(names, name, ",")
			for (k = 1; k <= wanted; k++)
				if (!(name[k] in at)) { print "golden: no column " name[k] > "/dev/stderr"; exit 1 }
			print names
			next
		}
		{
			split_csv($0, field)
			for (k = 1; k <= wanted; k++) {
				value = field[at[name[k]]]
				if (value ~ /,/) value = "\"" value "\""
				printf "%s%s", value, k < wanted ? "," : "\n"
			}
		}'
}

actual=$(mktemp)
trap 'rm -f "$actual" "$actual.all"' EXIT
if ! "$program" compare "${traces[@]}" --policies "$policies" --on-oom=skip --no-host --csv - > "$actual.all" ||
	! select_columns < "$actual.all" > "$actual"; then
	echo 'golden: compare failed'
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
{ head -n 1 "$actual"; tail -n +2 "$actual" | sort; } > "$actual.sorted" && mv "$actual.sorted" "$actual"

if [ $rewrite -eq 1 ]; then
	[ -e "$golden" ] && diff "$golden" "$actual"
	cp "$actual" "$golden"
	echo "golden: wrote $(($(wc -l < "$golden") - 1)) rows into $golden"
	exit 0
fi

# A metric that is 0 in every run is none, or its sum was forgotten. (The host's are measured, and not here.)
zero=''
if [ ${#traces[@]} -gt 1 ]; then
	for name in $(sed -n 's/^FRAG_METRIC_[A-Z0-9]*(\([a-z0-9_]*\),.*/\1/p' src/metrics/metrics.def | grep -vE '^host_|^events_per_s$'); do
		columns=$name select_columns < "$actual.all" | awk 'NR > 1 && $1 != "" && $1 + 0 != 0 { some = 1 } END { exit !some }' || zero+=" $name"
	done
fi
if [ -n "$zero" ]; then
	echo "golden: 0 in every run:$zero"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi

names=$(for trace in "${traces[@]}"; do basename "$trace" .cft; done)
awk -v only="$names" '
	BEGIN { n = split(only, list, "\n"); for (i = 1; i <= n; i++) asked[list[i]] = 1 }
	FNR == 1 { next }
	{
		# policy and trace: a policy with commas is quoted
		rest = $0
		if (match(rest, /^"[^"]*"/)) { policy = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 2) }
		else { policy = rest; sub(/,.*/, "", policy); sub(/^[^,]*,/, "", rest) }
		split(rest, field, ",")
		key = policy " on " field[1] ", device " field[2]
	}
	NR == FNR { if (field[1] in asked) want[key] = $0; next }
	{
		got[key] = 1
		if (!(key in want)) { print "new: " $0; failed++ }
		else if (want[key] != $0) { print "differs: want " want[key] "\n          got " $0; failed++ }
		else passed++
	}
	END {
		for (key in want) if (!(key in got)) { print "gone: " want[key]; failed++ }
		printf "%d passed, %d failed, 0 skipped\n", passed, failed
		exit failed > 0 || passed == 0
	}' "$golden" "$actual"
