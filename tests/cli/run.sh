#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of the command line:
#	run.sh [--rewrite] PROGRAM [CASE...]	CASE_JOBS (1) of them at a time
#
# A short case is a row of a table, tests/cli/*.cases:
#	NAME EXIT COMMAND      or the command in lines of its own, each begun with "$ "
#	  > LINE               what must come out on standard output
#	  ! LINE               on standard error
#	  -> TEXT              the same for "cufrag COMMAND: TEXT (cufrag COMMAND --help)"; it may follow the command, too
#	  + FILE               what is left in its folder; without any, a command that fails must leave nothing
# A longer one is a script, cases/NAME.sh, with its expected results beside it (a row may have its long output there):
#	NAME.exit              the exit status (absent: 0)
#	NAME.stdout            exactly this, or NAME.stdout.glob (neither: nothing at all)
#	NAME.stderr            the same for standard error
# In a .glob file, and in lines begun with ">~" or "!~", a line "..." stands for any lines; the others are
# shell patterns.
#
# sh runs each case in an empty folder of its own, with CUFRAG (the program), TRACES (the bundled
# traces), DATA (tests/cli/data), ROOT (of the tree), SHARED (the big recordings, which may be
# absent), cc (the compiler) and a cache of its own. In a row `cufrag` is the program, and no
# variable needs quotes. A case that exits with 77 is skipped; its standard error says why; so is
# one with a line "# needs: TOOL..." where one of these (cc: a compiler) is missing, and
# one that uses the pretended card where the program is built without it (PRETEND=0). One that takes
# longer than CASE_TIMEOUT seconds (300, at night 1200) is ended with all that it started, and has
# failed. With FRAG_TEST_QUICK and no CASE, those in tests/cli/slow and those that need big
# recordings (NAME_shared) are skipped. --rewrite takes exit status, files and exact output from
# what came out (patterns and "-> " stay as they are). The last line is "N passed, N failed, N
# skipped".
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
DATA=$here/data
TRACES=$ROOT/traces
SHARED=$(cd "$ROOT" && realpath -m "${SHARED_TRACES:-../shared/traces}")
cc=${CC:-cc}
export CUFRAG ROOT DATA TRACES SHARED cc

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---- tables: each row becomes the files of a case, in $scratch/rows ----

cases=$here/cases rows=$scratch/rows
mkdir "$rows"
shopt -s nullglob
tables=("$here"/*.cases)

unpack_tables() {
	awk -v rows="$rows" '
		function put(kind, text) { printf "%s", text > (base kind) }
		function finish() {
			if (name == "") return
			put(".sh", "IFS='"'"'\n'"'"'\ncufrag() { \"$CUFRAG\" \"$@\"; }\n" command)
			if (status != 0 || files != "") put(".files", files)
			if (status != 0) put(".exit", status "\n")
			if (name in out) put(".stdout" out[name], stdout)
			if (name in err) put(".stderr" err[name], stderr)
			close(base ".sh"); close(base ".files"); close(base ".exit")
			close(base ".stdout" out[name]); close(base ".stderr" err[name])
			name = ""
		}
		function rest(skip) { return substr($0, skip) "\n" }
		function refuses(text) {
			match(command, /cufrag [a-z]+/)
			err[name] = ""
			stderr = substr(command, RSTART, RLENGTH) ": " text " (" substr(command, RSTART, RLENGTH) " --help)\n"
		}
		{ sub(/^[ \t]+/, "", $0) }
		/^(#|$)/ { next }
		/^\$ / { command = command rest(3); next }
		/^>~/ { out[name] = ".glob"; stdout = stdout rest(4); next }
		/^-> / { refuses(substr($0, 4)); next }
		/^!~/ { err[name] = ".glob"; stderr = stderr rest(4); next }
		/^>/ { out[name] = ""; stdout = stdout rest(3); next }
		/^!/ { err[name] = ""; stderr = stderr rest(3); next }
		/^\+/ { files = files rest(3); next }
		{
			finish()
			name = $1; status = $2; command = $0
			base = rows "/" name
			sub(/^[^ ]+ +[0-9]+ */, "", command)
			files = stdout = stderr = ""
			at = index(command, " -> ")
			if (at) {
				said = substr(command, at + 4)
				command = substr(command, 1, at - 1)
				refuses(said)
			}
			if (command != "") command = command "\n"
			if (name !~ /^[a-z0-9_]+$/ || status !~ /^[0-9]+$/ || seen[name]++) {
				printf "run.sh: %s: not a row of its own: %s\n", FILENAME, $0 > "/dev/stderr"
				exit 1
			}
		}
		END { finish() }' "$@"
}

# the rows of a table again, from the files that rewrite_case left; comments and commands stay
pack_table() {
	awk -v rows="$rows" '
		function lines(file, mark,   line) {
			while ((getline line < file) > 0) print "\t" mark (line == "" ? "" : " " line)
			close(file)
		}
		function finish() {
			if (name == "") return
			lines(rows "/" name ".stdout", ">")
			lines(rows "/" name ".stdout.glob", ">~")
			if (!refused) lines(rows "/" name ".stderr", "!")
			lines(rows "/" name ".stderr.glob", "!~")
			lines(rows "/" name ".files", "+")
			name = ""
		}
		/^[ \t]*[>!+]/ { next }
		/^[ \t]*-> / { refused = 1 }
		/^[ \t]*(\$|->) / { print; next }
		{ finish(); refused = / -> / }
		/^(#|$)/ { print; next }
		{
			name = $1; status = 0
			getline status < (rows "/" name ".exit")
			close(rows "/" name ".exit")
			sub(/ [0-9]+/, " " status)
			print
		}
		END { finish() }' "$1"
}

# ---- one case ----

# The pattern of a .glob file: lines of "..." become "*". A "..." line may also stand for none.
pattern_of() {
	local text='' line
	while IFS= read -r line || [ -n "$line" ]; do
		if [ "$line" = ... ]; then text+='*'; else text+="$line"$'\n'; fi
	done < "$1"
	printf '%s' "$text"
}

# $want is what must come out as KIND of the case NAME: a file in cases/ if there is one, else what its row says.
expected() {
	for want in "$cases/$1.$2"{.glob,} "$rows/$1.$2"{.glob,}; do
		[ -e "$want" ] && return
	done
	want=/dev/null
}

# NAME, stdout, stderr or files, what came out. Says what is wrong.
compare() {
	local want got=$3 text
	expected "$1" "$2"
	if [ "${want%.glob}" != "$want" ]; then
		text=$(cat "$got"; echo .)
		# shellcheck disable=SC2053 # it is a pattern
		[[ ${text%.} == $(pattern_of "$want") ]] && return 0
		# a final "..." has lost nothing to $( ), a last line has lost its end
		[[ ${text%$'\n'.} == $(pattern_of "$want") ]] && return 0
		echo "$2 does not match its patterns:"
		sed 's/^/    /' "$got"
		return 1
	fi
	cmp -s "$want" "$got" && return 0
	echo "$2 differs (- expected, + got):"
	diff -u "$want" "$got" | tail -n +3 | sed 's/^/    /'
	return 1
}

rewrite_case() {
	local name=$1 dir=$2 status=$3 home=$cases kind want
	if [ -e "$rows/$name.sh" ]; then
		home=$rows
		if [ -e "$rows/$name.files" ] || [ "$status" -ne 0 ]; then cp "$dir.files" "$rows/$name.files"; fi
	fi
	rm -f "$home/$name.exit"
	[ "$status" -ne 0 ] && echo "$status" > "$home/$name.exit"
	for kind in stdout stderr; do
		expected "$name" $kind
		[ "${want%.glob}" != "$want" ] && continue
		[ "$want" = /dev/null ] && want=$home/$name.$kind
		rm -f "$want"
		[ -s "$dir.$kind" ] && cp "$dir.$kind" "$want"
	done
}

limit=${CASE_TIMEOUT:-${FRAG_TEST_NIGHTLY:+1200}} limit=${limit:-300}
"$CUFRAG" help layout > /dev/null 2>&1 && pretends=1 || pretends=0
passed=0 failed=0 skipped=0
# one that no other worker has begun
run_case() {
	local name=$1 script=$cases/$1.sh dir=$scratch/$1 status want kind tool
	if ! mkdir "$dir" 2> /dev/null; then
		[ -d "$dir" ] || failed=$((failed + 1))
		return
	fi
	[ -e "$rows/$name.sh" ] && script=$rows/$name.sh
	for tool in $(sed -n 's/^# needs: //p' "$script"); do
		[ "$tool" = cc ] && tool=$cc
		command -v "$tool" > /dev/null || { skipped=$((skipped + 1)); echo "skipped: $name: no $tool"; return; }
	done
	if [ $pretends -eq 0 ] && grep -qsE -e '"?--no-gpu|(cufrag|"\$CUFRAG"|help) (-q )?(layout|advise)|^  (layout|advise) ' \
		"$script" "$cases/$name".std*; then
		skipped=$((skipped + 1))
		echo "skipped: $name: built without the pretended card"
		return
	fi
	(cd "$dir" && XDG_CACHE_HOME=$dir/cache exec timeout -k 5 "$limit" sh "$script") > "$dir.stdout" 2> "$dir.stderr" < /dev/null
	status=$?
	if [ $status -eq 77 ]; then
		skipped=$((skipped + 1))
		echo "skipped: $name: $(tail -n 1 "$dir.stderr")"
		return
	fi
	ls "$dir" > "$dir.files"
	[ $rewrite -eq 1 ] && rewrite_case "$name" "$dir" $status
	expected "$name" exit
	want=$(< "$want")
	: > "$dir.wrong"
	[ $status -ne 124 ] && [ $status -ne 137 ] || echo "ended after $limit s" > "$dir.wrong"
	[ $status -eq "${want:-0}" ] || echo "exit status $status, not ${want:-0}" >> "$dir.wrong"
	for kind in stdout stderr files; do
		[ $kind = files ] && [ ! -e "$rows/$name.files" ] && continue
		compare "$name" $kind "$dir.$kind" >> "$dir.wrong"
	done
	if [ ! -s "$dir.wrong" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
		cat "$dir.wrong"
	fi
	[ ! -s "$dir.files" ] || find "$dir" -mindepth 1 -delete
}

# ---- all of them ----

names=("$@")
unpack_tables "${tables[@]}" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
if [ $# -eq 0 ]; then
	mapfile -t slow < <(grep -v '^#' "$here/slow"; cd "$cases" && printf '%s\n' *_shared.sh | sed 's/\.sh$//')
	names=("${slow[@]}") # they begin first
	for file in "$cases"/*.sh "$rows"/*.sh; do file=${file##*/} names+=("${file%.sh}"); done
	if [ -n "${FRAG_TEST_QUICK:-}" ]; then
		skipped=${#slow[@]}
		for name in "${slow[@]}"; do mkdir "$scratch/$name"; done
		echo "skipped: ${slow[*]}: not among the quick tests"
	fi
fi
work() {
	for name in "${names[@]}"; do run_case "$name"; done
	echo "$passed $failed $skipped" > "$scratch/$1.count"
}
for ((worker = 1; worker < ${CASE_JOBS:-1}; worker++)); do work $worker & done
work 0
wait
if [ $rewrite -eq 1 ]; then
	for table in "${tables[@]}"; do
		pack_table "$table" > "$scratch/table" && ! cmp -s "$scratch/table" "$table" && cp "$scratch/table" "$table"
	done
fi
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p, f, s }' "$scratch"/*.count)
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
