#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table of all bundled traces by all policies: what each reserves, how much of it is used, what it asks
# of the driver and what that costs, and what the simulation itself costs per operation.
#
#	policy_table.sh [PROGRAM]
# Writes results/policies/table.csv.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
program=${1:-build/release/cufrag}
out=results/policies
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" compare traces/*.cft --policies 'all; pytorch:expandable_segments:True' --optimum place --threads 1 --csv "$work/all.csv" > "$work/text"

python3 - "$work/all.csv" "$out" << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
keys = ["trace", "device", "policy", "completed", "peak_reserved_mib", "efficiency_percent",
        "over_bound", "driver_calls", "driver_ms", "host_ns_per_op"]
table = []
for r in rows:
    f = lambda k: float(r[k] or 0)
    table.append({
        "trace": r["trace"], "device": r["device_ordinal"], "policy": r["policy"], "completed": r["completed"],
        "peak_reserved_mib": "%.0f" % (f("peak_reserved_bytes") / 2**20),
        "efficiency_percent": "%.1f" % (100 * f("efficiency_ratio")),
        "over_bound": "%.3f" % f("reserved_over_bound_ratio"),
        "driver_calls": r["driver_calls_count"], "driver_ms": "%.1f" % (f("modelled_ns") / 1e6),
        "host_ns_per_op": "%.0f" % f("host_ns_per_op")})
table.sort(key=lambda t: (t["trace"], t["device"], t["completed"] != "true", float(t["peak_reserved_mib"]), t["policy"]))
with open(sys.argv[2] + "/table.csv", "w", newline="") as o:
    w = csv.DictWriter(o, keys, lineterminator="\n")
    w.writeheader()
    w.writerows(table)
END
echo "policies: $out/table.csv"
