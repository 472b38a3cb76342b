# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The functions test_… of a script as tests: source it, define them, and end with
#	run_cases [NAME]	all, or those whose names begin so behind test_
# Each runs in an empty folder of its own below $scratch; it fails by its status, with `strict=1` by
# that of any command. $SKIP as its status, which `needs` ends it with where a tool is missing, is
# that it was skipped. The last line is "N passed, N failed, N skipped".
SKIP=77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
strict=

# skip WHY
skip() { echo "$*" >&2; exit $SKIP; }
needs() { local tool; for tool; do command -v "$tool" > /dev/null || skip "no $tool here"; done; }
not_quick() { [ -z "${FRAG_TEST_QUICK:-}" ] || skip 'not among the quick tests'; }

# COMMAND: it fails
fails() { ! "$@"; }

run_cases() {
	local passed=0 failed=0 skipped=0 case
	for case in $(declare -F | awk '{ print $3 }' | grep "^test_${1:-}"); do
		mkdir "$scratch/$case"
		(
			[ -z "$strict" ] || set -e
			cd "$scratch/$case" || exit
			"$case"
		) > "$scratch/output" 2>&1
		case $? in
		0) passed=$((passed + 1)) ;;
		"$SKIP") skipped=$((skipped + 1)); echo "skipped $case: $(tail -n 1 "$scratch/output")" ;;
		*) failed=$((failed + 1)); echo "failed $case"; tail -n 100 "$scratch/output" ;;
		esac
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}
