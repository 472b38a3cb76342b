#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything there is to measure and check on a real card, into one folder:
#	gpu_suite.sh OUT [STEP]...
#	  environment  card, driver, versions, commit
#	  build        unless CUFRAG names a program
#	  tests        conformance and device tests on the card (folder TESTS)
#	  calls        latency of driver calls, and the cost profile made of it
#	  contents     every trace under every policy, all bytes filled and verified
#	  sim          device calls, reserved bytes and driver time against the simulated card
#	  policies     what policies take per operation
#	  peer         PyTorch's own allocator beside them, where it is installed
#	  sanitizer    compute-sanitizer memcheck on a short trace
# All steps by default. DEVICE=sim is a dry run without a card. TRACES: files (default: the bundled
# ones); EXTRA: more, for the steps policies and peer. A step that fails is told and the others go on; the exit
# status is 1 then. summary.csv has a row for each.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C NO_COLOR=1
[ $# -ge 1 ] || { sed -n '3,16s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
mkdir -p "$out"
device=${DEVICE:-cuda}
cufrag=${CUFRAG:-build/release/cufrag}
tests=${TESTS:-$(dirname "$cufrag")/tests/gpu}
read -r -a traces <<< "${TRACES:-$(echo traces/*.cft)}"
read -r -a extra <<< "${EXTRA:-}"
limit=${STEP_TIMEOUT:-280}

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
# PyTorch does not record the limit that this recording ran under
limit_for() { case $1 in *oomcap*) echo "--limit 7.5G" ;; esac; }

environment() {
	{
		echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
		echo "commit: $(git rev-parse --verify -q HEAD || echo "${COMMIT:-unknown}")"
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
	"$cufrag" bench --device "$device" --csv "$out/calls.csv" --profile "$out/profile.csv"
}

contents() {
	local t failed=0 fill=(--fill verify)
	[ "$device" = sim ] && fill=()
	for t in "${traces[@]}"; do
		echo "---- $t"
		# shellcheck disable=SC2046 # two words
		timeout "$limit" "$cufrag" compare "$t" --device "$device" "${fill[@]}" $(limit_for "$t") \
			--policies "$(policies_for "$t")" --csv "$out/contents-$(basename "$t" .cft).csv" || failed=1
	done
	return $failed
}

sim() {
	local t failed=0 cost=()
	[ -s "$out/profile.csv" ] && cost=(--cost "$out/profile.csv")
	for t in "${traces[@]}"; do
		# shellcheck disable=SC2046 # two words
		timeout "$limit" "$cufrag" compare "$t" --device "$device" "${cost[@]}" $(limit_for "$t") \
			--policies "$(policies_for "$t")" --against-sim "$out/one.csv" > /dev/null || failed=1
		[ -s "$out/one.csv" ] || continue
		[ -s "$out/sim.csv" ] || head -n 1 "$out/one.csv" > "$out/sim.csv"
		tail -n +2 "$out/one.csv" >> "$out/sim.csv"
		rm -f "$out/one.csv"
	done
	cut -d, -f 1,3,6,9,12,13,15,16 "$out/sim.csv"
	return $failed
}

policies() {
	timeout "$limit" "$cufrag" bench --device "$device" --csv "$out/policies.csv" \
		--policies "$(policies_for)" "${traces[@]}" "${extra[@]}"
}

peer() {
	[ "$device" = cuda ] || { echo "skipped: no card"; return 77; }
	timeout "$limit" scripts/bench_peer_torch.sh "$cufrag" "$out/peer.csv" "${traces[@]}" "${extra[@]}" &&
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

all=(environment build tests calls contents sim policies peer sanitizer)
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
