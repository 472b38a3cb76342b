#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is what a policy serves through libcufrag_torch.so right, and what does it cost? One run on a card:
#	live_proofs.sh OUT [--seconds N] [--only faults,pairs,steps,async,storms] [--programs gnn,varlen,…]
# - faults: every 3rd, 7th, 50th driver call of the policy fails (CUFRAG_FAIL_EVERY); nothing may be lost or stay
# - pairs: ns of torch.empty and del, PyTorch's own allocator and policies in turns
# - steps: six trainings (live/programs.py), allocators in turns step by step: losses and step times
# - async: cudaMallocAsync of PyTorch beside policy async
# - storms: a dozen processes fill, hand over, check and free blocks for the rest of N (490) seconds
#   (live/storm.py); beside them compute-sanitizer, and the losses under the other allocators
# What is finished is in OUT whenever it is stopped: proofs.md, proofs.jsonl, log.txt, sanitizer-*.txt.
# CUFRAG names the program (default build/release/cufrag; libcufrag_torch.so lies beside it), PYTHON the Python with PyTorch.
# Dry run: LIVE_LAYERS=1 CUFRAG record --no-gpu --values none -o /dev/null.cft -- python scripts/lab/live/proofs.py OUT CUFRAG --dry
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
[ $# -ge 1 ] || { sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
cufrag=$(realpath "${CUFRAG:-build/release/cufrag}")
mkdir -p "$out"
seconds=490
case " $* " in *" --seconds "*) seconds=$(sed 's/.* --seconds \([0-9]*\).*/\1/' <<< " $* ") ;; esac
finish() {
	trap - EXIT
	"${PYTHON:-python3}" scripts/lab/live/proofs_report.py "$out"
	cat "$out/proofs.md"
}
trap finish EXIT
trap 'exit 1' INT TERM
"$cufrag" --version && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# a second limit, should a run not let itself be stopped
timeout -k 5 $((seconds + 10)) "${PYTHON:-python3}" scripts/lab/live/proofs.py "$out" "$cufrag" --seconds "$seconds" "$@"
