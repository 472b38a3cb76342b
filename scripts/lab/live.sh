#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Policies in real trainings on a real card, compared with the simulation: one run for all.
#	live.sh OUT [--full] [--seconds N] [--programs gnn,varlen,…]
# gnn, varlen, serve, vision, lora and hf (scripts/lab/live/programs.py) under PyTorch's own allocators and through
# libcufrag_torch.so: losses of all steps, peak reserved by the book and by NVML, step time, driver calls; then
# at the smallest limit that completes in the simulation, and 2 % below it. The short set takes at
# most N (285) seconds, --full an hour. What is finished is in OUT whenever it is stopped:
#	table.md runs.csv fit.csv	measured beside predicted
#	samples.csv series.csv		for scripts/lab/plot_live.sh
#	live.tar			recordings (.cft), all runs and predictions as JSON lines, the programs' output
# CUFRAG names the program (default build/release/cufrag; libcufrag_torch.so lies beside it), PYTHON the Python with
# PyTorch. Dry run: CUFRAG record --no-gpu --values none -o /dev/null.cft -- python scripts/lab/live/live.py OUT CUFRAG
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
[ $# -ge 1 ] || { sed -n '3,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
cufrag=$(realpath "${CUFRAG:-build/release/cufrag}")
mkdir -p "$out"
seconds=285
for argument in "$@"; do
	case $argument in --full) seconds=3500 ;; esac
done
echo "program,method,time_s,event,live_bytes,reserved_bytes,nvml_bytes" > "$out/samples.csv"
echo "program,policy,event,live_bytes,reserved_bytes" > "$out/series.csv"

finish() {
	trap - EXIT
	"${PYTHON:-python3}" scripts/lab/live/report.py "$out"
	rm -rf "$out"/recordings/*.pickle "$out"/recordings/*.report
	(cd "$out" && tar -cf live.tar recordings ./*.jsonl log.txt && rm -rf recordings ./*.jsonl log.txt)
	cat "$out/table.md"
}
trap finish EXIT
trap 'exit 1' INT TERM
"$cufrag" --version && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# a second limit, should a run not let itself be stopped
timeout -k 5 $((seconds + 20)) "${PYTHON:-python3}" scripts/lab/live/live.py "$out" "$cufrag" --seconds "$seconds" "$@"
