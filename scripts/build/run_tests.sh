#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that `make` has built, and counts them:
#	run_tests.sh [--quick|--sanitize|--threads|--gpu] [--only NAME] BUILD_FOLDER
# Kinds of test: cmocka programs (tests/{unit,conformance,golden,gpu}), files of cases that those
# answer, Python over a program of tests/drivers (rules of policies,
# tests/{unit/*,pretend/card}/*.py), scripts (tests/NAME/run.*, whose last line is their count) and
# fuzz targets, run over their corpus.
#
# --quick     leaves out what needs big recordings, a browser or seconds of a processor
#             (FRAG_TEST_QUICK=1 in the environment)
# --sanitize  what a sanitizer can find something in: units, conformance, bundled traces, fuzz
#             corpora, and of the command line the tables and the cases in tests/cli/sanitize
# --threads   programs that use threads, and the case "threads" of the command line
# --gpu       tests/gpu
# --only      one test by its name ("unit/base/units", or "units"), or one case of a script
#             ("cli/help_each"); prints everything that it prints
#
# TEST_JOBS tests (the number of processors) run at a time; one that takes longer than TEST_TIMEOUT
# seconds (600) has failed. With PRETEND=0 in the environment, the tests of the pretended card are
# skipped. Prints what fails; the last line is "N passed, N failed, N skipped". The exit status is 1
# if something failed or nothing ran.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C

# ---- one test: its output goes to LOG, its counts "passed failed skipped" to LOG.count

# cmocka in TAP: a plan "1..N" per group, then "ok", "not ok" or "… # SKIP". A crash shows
# as a plan that was not kept, or as an exit status without a "not ok".
count_tap() {
	awk -v status="$1" '
		/^1\.\.[0-9]+$/ { plan += substr($0, 4) }
		/^(not )?ok [0-9]+.*# SKIP/ { skipped++; next }
		/^ok [0-9]+/ { passed++ }
		/^not ok [0-9]+/ { failed++ }
		END {
			seen = passed + failed + skipped
			if (plan > seen) { failed += plan - seen }
			else if (plan == 0 || (status != 0 && failed == 0)) { failed++ }
			print passed + 0, failed + 0, skipped + 0
		}' "$2"
}

count_script() {
	awk -v status="$1" '
		{ last = $0 }
		END {
			if (last !~ /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/) { print 0, 1, 0; exit }
			split(last, n, " ")
			print n[1], n[3] + (status != 0 && n[3] == 0), n[5]
		}' "$2"
}

run_one() {
	local kind=$1 name=$2 log=$3 TIMEFORMAT='%R %U %S' took status
	shift 3
	took=$({ time timeout -k 5 "${TEST_TIMEOUT:-600}" "$@" > "$log" 2>&1 < /dev/null; } 2>&1)
	status=$?
	[ $status -eq 124 ] && echo "ended after ${TEST_TIMEOUT:-600} s" >> "$log"
	case $kind in
	tap) count_tap $status "$log" ;;
	script) count_script $status "$log" ;;
	fuzz) [ $status -eq 0 ] && echo 1 0 0 || echo 0 1 0 ;;
	esac > "$log.count"
	local passed failed skipped
	read -r passed failed skipped < "$log.count"
	if [ "$failed" -gt 0 ]; then
		{
			echo "---- $name: $failed failed (exit status $status)"
			case $kind in
			tap) grep -vE '^ok [0-9]+|^(1\.\.|# (ok|Running))' "$log" | tail -n 60 ;;
			script) tail -n 80 "$log" ;;
			fuzz) tail -n 40 "$log" ;;
			esac
			echo "---- all output: $log"
		} >&2
	fi
	awk -v name="$name" -v p="$passed" -v f="$failed" -v s="$skipped" '{
		printf "  %-34s %4d passed %3d failed %3d skipped %6.1f s %6.1f s CPU\n", name, p, f, s, $1, $2 + $3
	}' <<< "$took"
}

# ---- which tests

program_sources() {
	local pretend=tests/pretend
	[ "${PRETEND:-1}" != 0 ] || pretend=
	# shellcheck disable=SC2086 # no word where it is left out
	case $1 in
	gpu) find tests/gpu -name 'test_*.c' ;;
	threads) grep -l pthread -r tests/unit $pretend tests/conformance tests/golden --include='test_*.c' ;;
	sanitize) find tests/unit $pretend tests/conformance -name 'test_*.c' ;;
	quick) find tests/unit $pretend tests/conformance tests/golden -name 'test_*.c' ;;
	full) find tests/unit $pretend tests/conformance tests/golden tests/gpu -name 'test_*.c' ;;
	esac 2> /dev/null | sort
}

scripts_of() {
	case $1 in
	threads | sanitize) echo cli ;;
	gpu) echo gpu ;;
	quick) echo cli golden fleet json report scripts view ;;
	full) echo cli golden report scripts agree json fleet view gpu "$([ "${PRETEND:-1}" = 0 ] || echo pretend)" ;;
	esac
}

# A line for each test: kind, name, command, the longest first. $1: build folder, $2: mode
list_tests() {
	local b=$1 mode=$2 source name command how file card=
	for name in $(scripts_of "$mode"); do
		printf 'script\t%s\t%s\n' "$name" "$(echo "tests/$name"/run.*) $b/cufrag$(cases_of "$mode" "$name")"
	done
	program_sources "$mode" | while read -r source; do
		name=${source#tests/} name=${name%.c}
		if grep -q '^TEST' "$source" || ! grep -q '^CASES_IN' "$source"; then
			printf 'tap\t%s\t%s\n' "${name/test_/}" "$b/tests/$name"
		fi
		sed -n 's/^CASES_IN_\(LINES\|PARTS\)("tests\/\(.*\)",.*/\L\1\E \2/p' "$source" | while read -r how file; do
			printf 'tap\t%s\t%s\n' "$file" "tests/support/cases.py $how tests/$file $b/tests/$name"
		done
	done
	case $mode in quick | full | sanitize)
		[ "${PRETEND:-1}" = 0 ] || card=tests/pretend/card
		for source in tests/{policies,drivers}/*.rules tests/unit/*/*.py ${card:+"$card"/*.py}; do
			[ -e "$source" ] || continue
			name=${source#tests/} command="$source $b/tests/drivers"
			[ "${source%.rules}" = "$source" ] || name=rules/${name#*/} command="tests/drivers/rules.py $b/tests/drivers $source"
			printf 'tap\t%s\t%s\n' "${name%.*}" "$command"
		done ;;
	esac
	case $mode in quick | full | sanitize)
		for name in tests/fuzz/corpus/*/; do
			[ -d "$name" ] || continue
			name=$(basename "$name")
			printf 'fuzz\t%s\t%s\n' "fuzz/$name" "env FUZZ=$name $b/tests/fuzz/fuzz -runs=0 tests/fuzz/corpus/$name"
		done ;;
	esac
	return 0
}

# What a mode limits a script to, each word after a space.
cases_of() {
	case $1/$2 in
	threads/cli) printf ' threads' ;;
	sanitize/cli) cat tests/cli/sanitize tests/cli/*.cases | sed -n 's/^\([a-z][a-z0-9_]*\)\( [0-9].*\)\?$/ \1/p' | tr -d '\n' ;;
	esac
}

# Does WANTED mean the test NAME? Its whole name, its last parts, or group and last part ("unit/units")
means() {
	case /$2 in */"$1") return 0 ;; esac
	[ "$1" != "${1#*/}" ] && case $2 in "${1%%/*}"/*/"${1##*/}") return 0 ;; esac
	return 1
}

run_only() {
	local wanted=$1 kind name command status=
	while IFS=$'\t' read -r kind name command; do
		if means "$wanted" "${name%.cases}"; then
			# shellcheck disable=SC2086 # the command is words
			CMOCKA_MESSAGE_OUTPUT=STDOUT $command && : "${status:=0}" || status=1
		elif [ "$kind" = script ] && [ "${wanted%%/*}" = "$name" ]; then
			# shellcheck disable=SC2086
			$command "${wanted#*/}"
			return
		fi
	done < <(list_tests "$2" "$3")
	[ -n "$status" ] || { echo "run_tests.sh: no test '$wanted'" >&2; status=2; }
	return "$status"
}

main() {
	local mode=full b kind name command log jobs only=''
	local usage='usage: run_tests.sh [--quick|--sanitize|--threads|--gpu] [--only NAME] BUILD_FOLDER'
	while [ $# -gt 0 ]; do
		case $1 in
		--quick | --sanitize | --threads | --gpu) mode=${1#--} ;;
		--only) only=${2:?$usage}; shift ;;
		--help) echo "$usage"; return 0 ;;
		-*) echo "$usage" >&2; return 2 ;;
		*) break ;;
		esac
		shift
	done
	b=${1:?$usage}
	[ -d "$b" ] || { echo "run_tests.sh: no folder '$b'" >&2; return 2; }
	export CMOCKA_MESSAGE_OUTPUT=TAP CUFRAG=$b/cufrag
	export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
	export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
	[ -z "${CC:-}" ] || export CC=${CC#ccache } # cases look for the compiler by this name
	unset FRAG_TEST_QUICK
	case $mode in quick | sanitize | threads) export FRAG_TEST_QUICK=1 ;; esac

	if [ -n "$only" ]; then
		run_only "$only" "$b" "$mode"
		return
	fi
	local logs=$b/test-logs/$mode
	rm -rf "$logs" && mkdir -p "$logs"
	jobs=${TEST_JOBS:-$([ "$mode" = gpu ] && echo 1 || nproc)} # on a card, they compare free memory
	export CASE_JOBS=$jobs # of the command line, which is the longest script
	while IFS=$'\t' read -r kind name command; do
		log=$logs/${name//\//_}.log
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
		# shellcheck disable=SC2086 # the command is words
		run_one "$kind" "$name" "$log" $command &
	done < <(list_tests "$b" "$mode")
	wait
	if [ "${PRETEND:-1}" = 0 ]; then
		echo "skipped: tests/pretend: built without the pretended card"
		echo 0 0 "$(find tests/pretend -name 'test_*.c' | wc -l)" > "$logs/pretend.count"
	fi

	cat "$logs"/*.count 2> /dev/null | awk '
		{ passed += $1; failed += $2; skipped += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
			exit failed > 0 || passed + skipped == 0
		}'
}

main "$@"
