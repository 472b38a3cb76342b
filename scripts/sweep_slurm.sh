#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `cufrag sweep` as an array job of Slurm: every task takes its share of the traces, the file of
# results has its number in the name.
#
#	sbatch --array=0-15 scripts/sweep_slurm.sh TRACES... -o results.sqlite
#	cufrag sweep --merge results.*-of-16.sqlite -o results.sqlite		when all are done
#
# A task that was ended goes on where it was: submit the same array again.
# CUFRAG names the program where it is not on PATH.
#SBATCH --job-name=cufrag-sweep
#SBATCH --cpus-per-task=1
set -euo pipefail
exec "${CUFRAG:-cufrag}" sweep --threads "${SLURM_CPUS_PER_TASK:-1}" "$@"
