#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The JSON of every command against the schema that the command prints of it, which is also json.md of `make docs`:
#	run.sh PROGRAM [COMMAND]
# Each line of tests/json/commands is a case; every number in a conclusion, and in the title of a
# chart of the page, is one of the JSON beside it (documents.py; with FRAG_TEST_QUICK, pages are
# left out); a command with JSON that is missing from all of them is a failure.
set -uo pipefail
shopt -s nullglob
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:?usage: run.sh PROGRAM [COMMAND]}")
T=$(realpath "$here/../../traces") D=$(realpath "$here/../cli/data")
export T D
passed=0 failed=0 skipped=0
"$program" help layout > /dev/null 2>&1 && pretends=1 || pretends=0 # built with the pretended card?
command -v python3 > /dev/null || { echo 'no python3'; echo '0 passed, 0 failed, 1 skipped'; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
R=$scratch/results.sqlite
"$program" sweep "$T/leak.frames.cft" "$T/modelpar.default.cft" -o "$R" > /dev/null || exit 1

fail() { echo "FAILED: $*"; failed=$((failed + 1)); }

# The documents of a line, in a folder named like it.
write() {
	local line=$1 command=${1%% *} rest='' number
	number=$(printf 'line %02d: %s' "$2" "$command")
	mkdir "$number" && cd "$number" || exit 1
	case $line in *' -- '*) rest=" -- ${line#* -- }" line=${line%% -- *} ;; esac # options stand before the program
	"$program" help "$command" --format schema > schema.json || { fail "$command has no schema"; return; }
	eval "\"$program\" $line --json answer.json $page$rest" > out 2> err
	if [ $? -le 1 ]; then passed=$((passed + 1)); else cat err; fail "$line"; fi
}

page='--out page'
[ -z "${FRAG_TEST_QUICK:-}" ] || { page='' skipped=1; echo 'skipped: pages'; }
mkdir bin && ln -s "$D/empty_gnuplot.sh" bin/gnuplot
PATH=$scratch/bin:$PATH
number=0
while read -r line; do
	number=$((number + 1))
	case $line in '' | '#'*) continue ;; esac
	case $pretends/$line in 0/layout* | 0/advise* | 0/*--no-gpu*) skipped=$((skipped + 1)); continue ;; esac
	[ $# -lt 2 ] || [ "${line%% *}" = "$2" ] && write "$line" $number
	cd "$scratch" || exit 1
done < "$here/commands"
"$here/documents.py" line*/answer.json
wrong=$?
passed=$((passed - wrong)) failed=$((failed + wrong))
for name in $("$program" help --format names); do
	[ $# -ge 2 ] || grep -q "^$name " "$here/commands" || ! "$program" help "$name" --format schema > /dev/null 2>&1 ||
		fail "no case of '$name' in tests/json/commands"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
