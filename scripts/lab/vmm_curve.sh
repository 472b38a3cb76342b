#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `vmm` pays in driver time for what it saves in memory: each trace with its option
# `slack` from 0 to 0.5, with `budget` from nothing to all (and without the second mapping), peak
# against driver time.
#	vmm_curve.sh PROGRAM TRACE... > results/vmm/curve.csv
# Simulated card only: the same numbers on every machine.
set -euo pipefail

program=${1:?usage: vmm_curve.sh PROGRAM TRACE...}
shift
echo "trace,device_ordinal,policy,peak_reserved_bytes,lower_bound_bytes,over_bound_ratio,modelled_ns,duration_us,driver_share_ratio,handles_new,handles_moved,handles_revived"
for trace; do
	for options in slack=0,slack-bytes=0 slack={0,0.005,0.01,0.02,0.03,0.05,0.1,0.2,0.5} \
		budget={0,0.002,0.005,0.02,0.05,1} alias=false; do
		"$program" replay "$trace" --policy "vmm:$options" --no-host --json - |
			jq -r --arg policy "vmm:$options" '
			[.traces[].duration_us] as $us
			| .results | to_entries[]
			| .key as $i | .value
			| (.counters | with_entries(.value |= tonumber)) as $c
			| [.trace, .device_ordinal, $policy, .peak_reserved_bytes, .lower_bound_bytes,
			   (.peak_reserved_bytes / .lower_bound_bytes * 1e4 | round / 1e4),
			   .modelled_ns, $us[$i],
			   (.modelled_ns / $us[$i] / 1e3 * 1e5 | round / 1e5),
			   $c.new_handles, $c.moved_handles, $c.revived_handles] | @csv'
	done
done
