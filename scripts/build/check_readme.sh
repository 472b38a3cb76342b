#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is README.md still true? Runs the block on its first screen and compares the output with the block below it, and
# checks that it has at most 120 lines. (Links, paths, commands and options: check_names.py.)
#	check_readme.sh [make arguments]
# "..." in the README's output stands for any lines; the version behind "# cufrag" is not compared.
set -euo pipefail
cd "$(dirname "$0")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
complain() { echo "README.md: $*" >&2; failed=1; }

# block LANGUAGE N: the n-th fenced block of that language
block() {
	awk -v fence="\`\`\`$1" -v wanted="$2" '
		$0 == fence { n++; inside = n == wanted; next }
		/^```/ { inside = 0 }
		inside { print }' README.md
}
plain() { sed 's/^# cufrag [^ ]* /# cufrag /; s/ *$//'; }

commands=$(block sh 1)
[ "$commands" = 'make demo' ] || complain "the first block is not 'make demo': $commands"
make --no-print-directory demo "$@" > "$scratch/demo" || complain 'make demo failed'
# what make itself says about compiling is not part of it
grep -vE '^  [A-Z]+ +[a-z]' "$scratch/demo" | plain > "$scratch/got"
block text 1 | plain > "$scratch/want"
awk -v strict=1 '
	NR == FNR { got[++n] = $0; next }
	$0 == "..." { any = 1; next }
	{
		if (any) while (at < n && got[at + 1] != $0) at++
		any = 0
		if (got[++at] != $0) { print "wants: " $0; print "  got: " got[at]; bad = 1; exit }
	}
	END { if (!bad && !any && at < n) { print "misses: " got[at + 1]; bad = 1 }; exit bad }' \
	"$scratch/got" "$scratch/want" > "$scratch/difference" ||
	complain "the output of make demo differs: $(cat "$scratch/difference")"

lines=$(wc -l < README.md)
[ "$lines" -le 120 ] || complain "has $lines lines, more than 120"

[ $failed -eq 0 ] && echo 'README.md: true'
exit $failed
