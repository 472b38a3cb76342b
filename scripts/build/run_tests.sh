#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs what `make tests-build` has built and sums up:
#	run_tests.sh [--quick|--gpu|--threads] [--only NAME] BUILD_FOLDER
# Kinds of test: cmocka programs (unit, conformance, golden, gpu), rules of policies (tests/policies/*.rules), scripts (run.sh in cli, fleet,
# golden, json, report,
# scripts, threads; their last line is their count) and fuzz targets over their corpus (-runs=0: libFuzzer, where it
# is the driver, goes no further).
# --quick leaves out what needs the big recordings (FRAG_TEST_QUICK=1 in the environment),
# --gpu runs tests/gpu only, --threads tests/threads and the programs whose source says pthread.
#
# --only: the one of this name, as its line says it ("unit/opt"), or one case of a script ("cli/help_each"),
# which then says all it has to say.
#
# A test that runs for longer than TEST_TIMEOUT seconds (600) has failed; TEST_JOBS (the number of
# processors) run at a time. Prints what fails, then a last line "N passed, N failed, N skipped". Exit status 1 if
# something failed or nothing ran.
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
	local kind=$1 name=$2 log=$3 begin status
	shift 3
	begin=$EPOCHREALTIME
	timeout -k 5 "${TEST_TIMEOUT:-600}" "$@" > "$log" 2>&1 < /dev/null
	status=$?
	[ $status -eq 124 ] && echo "stopped after ${TEST_TIMEOUT:-600} s" >> "$log"
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
			echo "---- all of it: $log"
		} >&2
	fi
	awk -v name="$name" -v p="$passed" -v f="$failed" -v s="$skipped" \
		-v seconds="$(( (${EPOCHREALTIME/./} - ${begin/./}) / 100000 ))" \
		'BEGIN { printf "  %-34s %4d passed %3d failed %3d skipped %6.1f s\n", name, p, f, s, seconds / 10 }'
}

# ---- which tests

list_tests() {
	local b=$1 mode=$2 binary name source
	local groups=(unit conformance golden gpu)
	case $mode in
	quick | threads) groups=(unit conformance golden) ;;
	gpu) groups=(gpu) ;;
	esac
	for group in "${groups[@]}"; do
		for source in tests/"$group"/test_*.c tests/"$group"/*/test_*.c; do
			[ -e "$source" ] || continue
			name=$(basename "$source" .c)
			binary=$b/${source%.c}
			[ "$mode" = threads ] && ! grep -q pthread "$source" && continue
			printf 'tap\t%s\t%s\n' "$group/${name#test_}" "$binary"
		done
	done
	case $mode in quick | full)
		for source in tests/policies/*.rules; do
			[ -e "$source" ] || continue
			name=$(basename "$source" .rules)
			printf 'tap\t%s\t%s\n' "rules/$name" "$b/tests/policies/test_rules $source"
		done ;;
	esac
	local scripts=(cli fleet golden json report scripts threads)
	[ "$mode" = full ] && scripts+=(torch)
	case $mode in
	gpu) scripts=() ;;
	threads) scripts=(threads) ;;
	esac
	for name in "${scripts[@]}"; do
		printf 'script\t%s\t%s %s\n' "$name" "tests/$name/run.sh" "$b/cufrag"
	done
	case $mode in quick | full)
		for source in tests/fuzz/fuzz_*.c; do
			[ -e "$source" ] || continue
			name=$(basename "$source" .c)
			printf 'fuzz\t%s\t%s %s\n' "fuzz/${name#fuzz_}" "$b/tests/fuzz/$name" "-runs=0 tests/fuzz/corpus/${name#fuzz_}"
		done ;;
	esac
	return 0
}

# NAME as in the lines, without its kind ("opt"), or SCRIPT/CASE
run_only() {
	local kind name command
	while IFS=$'\t' read -r kind name command; do
		if [ "$name" = "$1" ] || [ "${name##*/}" = "$1" ]; then
			# shellcheck disable=SC2086 # the command is words
			CMOCKA_MESSAGE_OUTPUT=STDOUT $command
			return
		elif [ "$kind" = script ] && [ "${1%%/*}" = "$name" ]; then
			# shellcheck disable=SC2086
			$command "${1#*/}"
			return
		fi
	done < <(list_tests "$2" "$3")
	echo "run_tests.sh: no test '$1'" >&2
	return 2
}

main() {
	local mode=full b kind name command log jobs only=''
	local usage='usage: run_tests.sh [--quick|--gpu|--threads] [--only NAME] BUILD_FOLDER'
	while [ $# -gt 0 ]; do
		case $1 in
		--quick | --gpu | --threads) mode=${1#--} ;;
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
	[ "$mode" = quick ] && export FRAG_TEST_QUICK=1

	if [ -n "$only" ]; then
		run_only "$only" "$b" "$mode"
		return
	fi
	local logs=$b/test-logs/$mode
	rm -rf "$logs" && mkdir -p "$logs"
	jobs=${TEST_JOBS:-$(nproc)}
	export CASE_JOBS=$jobs # of the command line's, which come last
	while IFS=$'\t' read -r kind name command; do
		log=$logs/${name//\//_}.log
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
		# shellcheck disable=SC2086 # the command is words
		run_one "$kind" "$name" "$log" $command &
	done < <(list_tests "$b" "$mode")
	wait

	cat "$logs"/*.count 2> /dev/null | awk '
		{ passed += $1; failed += $2; skipped += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
			exit failed > 0 || passed + skipped == 0
		}'
}

main "$@"
