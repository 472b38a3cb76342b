#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is cudaMallocAsync on a card that lags behind what `replay --policy async --work lag=US` says, call by call?
#	pool_lag.sh TRACE OUT US...
# A recording of one stream and one device. The program holds the card back by exactly so much recorded time. OUT/pool_lag.txt: a line for each lag;
# OUT/growths.csv: where the pool grows, and where it differs. CUFRAG, POOL_LAG: programs that are built already. EXPORT=DIR: only the
# simulated side, into DIR, for a machine without cufrag; EXPORTED=DIR: from there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
trace=$1 out=$2
shift 2
mkdir -p "$out"
cufrag=${CUFRAG:-$here/../../build/release/cufrag}
program=${POOL_LAG:-$out/pool_lag}
simulated() {
	if [ -n "${EXPORTED:-}" ]; then
		gzip -dc "$EXPORTED/lag$1.csv.gz"
	else
		work=idle
		[ "$1" = 0 ] || work=lag=$1
		"$cufrag" export "$trace" -q --to csv --policy async --work "$work"
	fi
}
if [ -n "${EXPORT:-}" ]; then
	for us; do simulated "$us" | gzip -9 > "$EXPORT/lag$us.csv.gz"; done
	exit
fi
[ -x "$program" ] || nvcc -O2 -std=c++17 -o "$program" "$here/pool_lag.cu"
echo lag_us,call,bytes,reserved,simulated > "$out/growths.csv"
for us; do simulated "$us" | timeout -k 1 "${SECONDS_EACH:-30}" "$program" "$us" 2>> "$out/growths.csv" || echo "lag $us: failed"; done | tee "$out/pool_lag.txt"
