#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds, checks and measures all there is on a real card, into one folder:
#	gpu_suite.sh OUT [STEP]...
#	  environment  card, driver, versions, commit
#	  build        unless CUFRAG names a program
#	  tests        device tests on the card
#	  calls        latency of driver calls
#	  verify       the recorded settings of every trace, on the card
#	  contents     every trace under every policy, all bytes filled and verified
#	  sim          calls, reserved bytes and driver time beside the simulated card; a cost profile of this card
#	  profile      the same with that profile: does it hold?
#	  sanitizer    compute-sanitizer memcheck on a short trace
# DEVICE=sim is a dry run without a card. TRACES: files (default: the bundled ones); ROUNDS (5):
# replays of each pair in step sim. A step that fails is told and the others go on; the exit status
# is 1 then. summary.csv has a row for each.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C NO_COLOR=1
[ $# -ge 1 ] || { sed -n '3,16s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
mkdir -p "$out"
device=${DEVICE:-cuda}
cufrag=${CUFRAG:-build/release/cufrag}
programs=$(dirname "$cufrag")
read -r -a traces <<< "${TRACES:-$(echo traces/*.cft)}"
limit=${STEP_TIMEOUT:-280}

environment() {
	{
		echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
		echo "commit: $(git rev-parse --verify -q HEAD || echo unknown)"
		echo "program: $("$cufrag" --version 2>&1 | head -n 1)"
		echo "device: $device"
		nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv 2> /dev/null
		nvcc --version 2> /dev/null | tail -n 2
		uname -srm
		grep -m 1 'model name' /proc/cpuinfo
		"$cufrag" list devices
	} | tee "$out/environment.txt"
}

build() {
	[ -n "${CUFRAG:-}" ] && { echo "given: $CUFRAG"; return; }
	make -j "$(nproc)" tests-build
}

tests() {
	local failed=0 t
	for t in "$programs"/tests/gpu/test_gpu_*; do
		[ -x "$t" ] || continue
		echo "---- $(basename "$t")"
		CMOCKA_TEST_ABORT=1 timeout "$limit" "$t" || failed=1
	done
	return $failed
}

calls() { "$cufrag" bench --device "$device" --csv "$out/calls.csv"; }

verify() {
	local t failed=0
	for t in "${traces[@]}"; do
		echo "---- $t"
		timeout "$limit" "$cufrag" verify "$t" --device "$device" > "$out/one.txt" 2>&1
		# 1: a difference; those that addresses decide are shown to be such
		case $? in
		0) ;;
		1) ! grep -q 'not addresses alone' "$out/one.txt" || failed=1 ;;
		*) grep -q 'began late' "$out/one.txt" || failed=1 ;;
		esac
		cat "$out/one.txt"
		rm -f "$out/one.txt"
	done
	return $failed
}

lab() { timeout "$limit" "$programs/lab" "$@" --device "$device" "${traces[@]}"; }
contents() { lab contents -o "$out/contents.csv"; }
sim() { lab sim -o "$out/sim.csv" --rounds "${ROUNDS:-5}" --profile "$out/bench_profile.csv"; }
profile() { lab sim -o "$out/profile.csv" --rounds 3 --cost "$out/bench_profile.csv"; }

sanitizer() {
	[ "$device" = cuda ] && command -v compute-sanitizer > /dev/null || { echo "skipped"; return 77; }
	timeout "$limit" compute-sanitizer --tool memcheck --error-exitcode 9 "$programs/lab" contents \
		-o /dev/null --policies 'pytorch;pytorch:expandable_segments:True;vmm;async;native;slab' traces/mempool.default.cft
}

all=(environment build tests calls verify contents sim profile sanitizer)
steps=("$@")
[ $# -gt 0 ] || steps=("${all[@]}")
echo step,result,seconds > "$out/summary.csv"
status=0
for step in "${steps[@]}"; do
	case " ${all[*]} " in *" $step "*) ;; *) echo "gpu_suite: unknown step '$step'" >&2; exit 2 ;; esac
	begin=$SECONDS
	$step > "$out/$step.log" 2>&1
	case $? in 0) result=ok ;; 77) result=skipped ;; *) result=FAILED status=1 ;; esac
	echo "$step,$result,$((SECONDS - begin))" | tee -a "$out/summary.csv"
done
exit $status
