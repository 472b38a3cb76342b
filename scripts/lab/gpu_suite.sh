#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a card is measured for beside `make test-gpu` and `cufrag suite --device cuda`, into one folder:
#	gpu_suite.sh OUT [STEP]...	after make and make lab
#	  verify       the recorded settings of every trace, on the card
#	  contents     every trace under every policy, all bytes filled and verified
#	  sim          calls, reserved bytes and driver time beside the simulated card; a cost profile of this card
#	  profile      the same with that profile: does it hold?
#	  sanitizer    compute-sanitizer memcheck on a short trace
# DEVICE=sim is a dry run without a card. TRACES: files (default: the bundled ones); ROUNDS (5):
# replays of each pair in step sim. A step that fails is told and the others go on; the exit status
# is 1 then.
set -uo pipefail
out=$(realpath -m "${1:?usage: gpu_suite.sh OUT [STEP]...}")
shift
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$out"
programs=build/release device=${DEVICE:-cuda}
read -r -a traces <<< "${TRACES:-$(echo traces/*.cft)}"

verify() {
	local t said failed=0
	for t in "${traces[@]}"; do
		said=$("$programs/cufrag" verify "$t" --device "$device" 2>&1)
		# 1: a difference; those that addresses decide are shown to be such
		case $? in
		0) ;;
		1) [[ $said = *'not addresses alone'* ]] && failed=1 ;;
		*) [[ $said = *'began late'* ]] || failed=1 ;;
		esac
		printf -- '---- %s\n%s\n' "$t" "$said"
	done
	return $failed
}

lab() { "$programs/lab" "$@" --device "$device" "${traces[@]}"; }
contents() { lab contents -o "$out/contents.csv"; }
sim() { lab sim -o "$out/sim.csv" --rounds "${ROUNDS:-5}" --profile "$out/bench_profile.csv"; }
profile() { lab sim -o "$out/profile.csv" --rounds 3 --cost "$out/bench_profile.csv"; }
sanitizer() {
	[ "$device" = cuda ] || return 0
	compute-sanitizer --tool memcheck --error-exitcode 9 "$programs/lab" contents -o /dev/null --device "$device" \
		--policies 'pytorch;pytorch:expandable_segments:True;vmm;async;native;slab' traces/mempool.default.cft
}

status=0
[ $# -gt 0 ] || set -- verify contents sim profile sanitizer
for step; do
	case $step in verify | contents | sim | profile | sanitizer) ;; *) echo "gpu_suite: unknown step '$step'" >&2; exit 2 ;; esac
	if "$step" > "$out/$step.log" 2>&1; then echo "$step: ok"; else echo "$step: FAILED"; status=1; fi
done
exit $status
