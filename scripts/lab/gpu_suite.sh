#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything there is to measure and check on a real card, into one folder:
#	gpu_suite.sh OUT [STEP]...
#	  environment  card, driver, versions, commit
#	  build        unless CUFRAG names a program
#	  tests        conformance and device tests on the card (folder TESTS)
#	  calls        latency of driver calls, and a cost profile made of it
#	  verify       the recorded settings of every trace, on the card
#	  contents     every trace under every policy, all bytes filled and verified
#	  slow         the same for the pairs that take minutes (not by default), managed memory prefetched
#	  sim          device calls, reserved bytes and driver time against the simulated card
#	  sim_slow     the same for the pairs that take minutes, SLOW_ROUNDS (1) times (not by default)
#	  policies     what policies take per operation
#	  peer         PyTorch's own allocator beside them, where it is installed
#	  sanitizer    compute-sanitizer memcheck on a short trace
# All steps but slow and sim_slow by default. DEVICE=sim is a dry run without a card. TRACES: files (default: the
# bundled ones); EXTRA: more, for the steps policies and peer. ROUNDS (5): replays of each pair in step sim. COMMIT names
# the program (default: what git says). A step that fails is told and the others go on; the exit status is 1
# then. summary.csv has a row for each.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C NO_COLOR=1
[ $# -ge 1 ] || { sed -n '3,22s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
mkdir -p "$out"
device=${DEVICE:-cuda}
cufrag=${CUFRAG:-build/release/cufrag}
tests=${TESTS:-$(dirname "$cufrag")/tests/gpu}
read -r -a traces <<< "${TRACES:-$(echo traces/*.cft)}"
read -r -a extra <<< "${EXTRA:-}"
limit=${STEP_TIMEOUT:-280}
rounds=${ROUNDS:-5}
# older programs place offline by default, which takes time and no card
optimum=
"$cufrag" compare --help 2> /dev/null | grep -q -e --optimum && optimum='--optimum off'

# Policies that call the driver for every request, or fault every page in, take minutes: they are left
# out of traces whose files are larger than this.
slow=(15000:managed '100000:native|cub')

# those that run on their own: what "all" stands for
list_policies() {
	"$cufrag" compare traces/seeddemo.default.cft --policies all --csv - | cut -d, -f 1-4 | tr ',' '\n' |
		grep -xE "$("$cufrag" list policies | sed -n 's/^\([a-z][a-z0-9-]*\): .*/\1/p' | paste -sd '|')" | sort -u
}

# the list of policies for a trace (none: for any), separated by ';'
policies_for() {
	local names size=999999999 rule
	names=$(list_policies)
	[ $# -eq 1 ] && size=$(stat -c %s "$1")
	for rule in "${slow[@]}"; do
		[ "$size" -le "${rule%%:*}" ] || names=$(grep -vxE "${rule#*:}" <<< "$names")
	done
	printf '%s;' $names
	printf 'pytorch:expandable_segments:True\n'
}
# and what they leave out of a trace
left_out() { comm -13 <(policies_for "$1" | tr ';' '\n' | sort) <(list_policies) | paste -sd ';'; }
# the same for contents: terabytes are not faulted in page by page but prefetched
left_out_contents() { left_out "$1" | sed -E 's/(^|;)managed(;|$)/\1managed:prefetch=true\2/'; }
# PyTorch does not record the limit that this recording ran under
limit_for() { case $1 in *oomcap*) echo "--limit 7.5G" ;; esac; }

environment() {
	{
		echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
		echo "commit: ${COMMIT:-$(git rev-parse --verify -q HEAD || echo unknown)}"
		echo "program: $("$cufrag" --version 2>&1 | head -n 1)"
		echo "device: $device"
		nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv 2> /dev/null
		nvcc --version 2> /dev/null | tail -n 2
		uname -srm
		grep -m 1 'model name' /proc/cpuinfo
		"$cufrag" list devices
	} > "$out/environment.txt"
	cat "$out/environment.txt"
}

build() {
	[ -n "${CUFRAG:-}" ] && { echo "given: $CUFRAG"; return; }
	make -j "$(nproc)" tests-build
}

tests() {
	local failed=0 t
	for t in "$tests"/test_gpu_*; do
		[ -x "$t" ] || continue
		echo "---- $(basename "$t")"
		CMOCKA_TEST_ABORT=1 timeout "$limit" "$t" || failed=1
	done
	return $failed
}

calls() {
	"$cufrag" bench --device "$device" --csv "$out/calls.csv" --profile "$out/bench_profile.csv"
}

# one trace under a list of policies, all bytes verified
verify_contents() {
	local t=$1 fill=(--fill verify)
	[ "$device" = sim ] && fill=()
	echo "---- $t"
	# shellcheck disable=SC2046 # two words
	timeout "$limit" "$cufrag" compare "$t" --device "$device" "${fill[@]}" $(limit_for "$t") $optimum \
		--policies "$2" --csv "$out/one.csv" || return 1
	[ -s "$out/$3" ] || head -n 1 "$out/one.csv" > "$out/$3"
	tail -n +2 "$out/one.csv" >> "$out/$3"
	rm -f "$out/one.csv"
}

contents() {
	local t failed=0
	for t in "${traces[@]}"; do
		verify_contents "$t" "$(policies_for "$t")" contents.csv || failed=1
	done
	return $failed
}

slow() {
	local t left failed=0
	for t in "${traces[@]}"; do
		left=$(left_out_contents "$t")
		[ -z "$left" ] || verify_contents "$t" "$left" slow.csv || failed=1
	done
	return $failed
}

verify() {
	local t failed=0
	for t in "${traces[@]}"; do
		echo "---- $t"
		# shellcheck disable=SC2046 # two words
		timeout "$limit" "$cufrag" verify "$t" --device "$device" $(limit_for "$t") > "$out/one.txt" 2>&1
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

# against_sim FILE ROUNDS POLICIES: replays of all traces, one round after the other: on a shared host a slow
# spell lasts seconds, so the runs of one replay are spread over minutes. POLICIES TRACE tells which.
against_sim() {
	local t r policies failed=0
	for ((r = 1; r <= $2; r++)); do
		for t in "${traces[@]}"; do
			policies=$($3 "$t")
			[ -n "$policies" ] || continue
			# shellcheck disable=SC2046 # two words
			timeout "$limit" "$cufrag" compare "$t" --device "$device" $(limit_for "$t") $optimum \
				--work idle --policies "$policies" --repeats 1 \
				--against-sim "$out/one.csv" > /dev/null || failed=1
			[ -s "$out/one.csv" ] || continue
			[ -s "$out/$1" ] || head -n 1 "$out/one.csv" > "$out/$1"
			tail -n +2 "$out/one.csv" >> "$out/$1"
			rm -f "$out/one.csv"
		done
	done
	"$(dirname "$0")/gpu_rounds.sh" "$out/$1" > "$out/one.csv" && mv "$out/one.csv" "$out/$1" || failed=1
	"$(dirname "$0")/gpu_rounds.sh" --summary "$out/$1"
	return $failed
}

sim() { against_sim sim.csv "$rounds" policies_for; }
sim_slow() { against_sim sim_slow.csv "${SLOW_ROUNDS:-1}" left_out; }

policies() {
	timeout "$limit" "$cufrag" bench --device "$device" --csv "$out/policies.csv" \
		--policies "$(policies_for)" "${traces[@]}" "${extra[@]}"
}

peer() {
	[ "$device" = cuda ] || { echo "skipped: no card"; return 77; }
	timeout "$limit" scripts/lab/bench_peer_torch.sh "$cufrag" "$out/peer.csv" "${traces[@]}" "${extra[@]}" &&
		cat "$out/peer.csv"
}

sanitizer() {
	local p
	[ "$device" = cuda ] && command -v compute-sanitizer > /dev/null || { echo "skipped"; return 77; }
	for p in pytorch pytorch:expandable_segments:True vmm async native slab; do
		echo "---- $p"
		timeout "$limit" compute-sanitizer --tool memcheck --error-exitcode 9 \
			"$cufrag" replay traces/mempool.default.cft --device cuda --fill verify --policy "$p" \
			--json /dev/null > "$out/sanitizer.one" 2>&1 || { cat "$out/sanitizer.one"; return 1; }
		grep -E 'ERROR SUMMARY|result|COMPUTE' "$out/sanitizer.one"
	done
	rm -f "$out/sanitizer.one"
}

all=(environment build tests calls verify contents sim policies peer sanitizer)
steps=("$@")
[ $# -gt 0 ] || steps=("${all[@]}")
all+=(slow sim_slow)
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
