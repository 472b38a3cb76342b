#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make demo`: is the simulation what really happened, and what would other policies have done?
#	demo.sh PROGRAM [DEVICE]
# Writes into results/demo/ only.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${1:?usage: demo.sh PROGRAM [DEVICE]}
device=${2:-sim}
out=results/demo

# shows the command as one would type it, then runs it
run() {
	echo "\$ cufrag $*"
	"$program" "$@"
	echo
}

options=()
[ "$device" = sim ] || options=(--device "$device")
run verify traces/varlen.default.cft
run compare traces/varlen.default.cft traces/gnn.default.cft --out "$out" "${options[@]}"
echo "report: $out/report.html"
