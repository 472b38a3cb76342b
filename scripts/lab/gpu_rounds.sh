#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes one row out of the rows that `compare --against-sim` wrote for the same replay at different times:
#	gpu_rounds.sh ROWS.csv			-> CSV: driver_ns is the median of all rounds, with min and max
#	gpu_rounds.sh --summary SIM.csv	-> what agrees, in words
# Calls, bytes and addresses are those of the first round; runs_agree says whether all had as many calls.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }

if [ "$1" = --summary ]; then
	awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{
		rows++
		calls += $at["same_calls"] == "yes"
		either += $at["same_calls"] == "yes" || $at["same_calls_at_real_addresses"] == "yes"
		peak += $at["peak_reserved_bytes"] == $at["sim_peak_reserved_bytes"]
		agree += $at["runs_agree"] == "yes"
		if ($at["observed_at_bytes"] != "") {
			observed++
			exact += $at["observed_at_bytes"] == $at["mem_info_bytes"]
		}
		if ($at["driver_ns"] == 0)
			next
		timed++
		ratio = $at["modelled_ns"] / $at["driver_ns"]
		median += ratio >= 0.75 && ratio <= 1.25
		noisy += $at["driver_ns_max"] > 1.25 * $at["driver_ns_min"]
		low = !low || ratio < low ? ratio : low
		high = ratio > high ? ratio : high
		measured += $at["driver_ns"]
		modelled += $at["modelled_ns"]
	}
	END {
		printf "replays: %d, all rounds with the same number of calls: %d\n", rows, agree
		printf "same calls on the simulated card: %d, with the real addresses or without: %d\n", calls, either
		printf "peak reserved equal to the byte: %d\n", peak
		printf "cudaMemGetInfo equal to the byte: %d of %d\n", exact, observed
		printf "modelled driver time within 25 %% of the measured: %d of %d\n", median, timed
		printf "rounds of the same replay more than 25 %% apart: %d of %d\n", noisy, timed
		printf "modelled over measured: from %.2f to %.2f\n", low, high
		printf "all together: modelled %.3f s, measured %.3f s\n", modelled / 1e9, measured / 1e9
	}' "$2"
	exit
fi

awk -F, '
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print; next }
{
	key = $1 "," $2 "," $3
	if (!(key in first)) {
		first[key] = $0
		order[++keys] = key
	} else {
		split(first[key], f, ",")
		if (f[at["calls_count"]] != $at["calls_count"] || f[at["peak_reserved_bytes"]] != $at["peak_reserved_bytes"])
			differ[key] = 1
	}
	n = ++count[key]
	ns[key, n] = $at["driver_ns"]
	pair[key, $at["driver_ns"]] = $at["pair_ns"]
	# the simulated card was told how fast the host was in that round
	modelled[key, $at["driver_ns"]] = $at["modelled_ns"]
	if ("host_ratio" in at) host[key, $at["driver_ns"]] = $at["host_ratio"]
	if (n == 1 || $at["driver_ns_min"] + 0 < low[key]) low[key] = $at["driver_ns_min"] + 0
	if (n == 1 || $at["driver_ns_max"] + 0 > high[key]) high[key] = $at["driver_ns_max"] + 0
}
END {
	for (k = 1; k <= keys; k++) {
		key = order[k]
		n = count[key]
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && ns[key, j] + 0 < ns[key, j - 1] + 0; j--) {
				t = ns[key, j]; ns[key, j] = ns[key, j - 1]; ns[key, j - 1] = t
			}
		median = ns[key, int((n + 1) / 2)]
		fields = split(first[key], f, ",")
		f[at["pair_ns"]] = pair[key, median]
		f[at["driver_ns"]] = median
		f[at["modelled_ns"]] = modelled[key, median]
		if ("host_ratio" in at) f[at["host_ratio"]] = host[key, median]
		f[at["driver_ns_min"]] = sprintf("%.0f", low[key])
		f[at["driver_ns_max"]] = sprintf("%.0f", high[key])
		if (key in differ) f[at["runs_agree"]] = "no"
		f[at["modelled_over_measured_ratio"]] = sprintf("%.3f", median > 0 ? f[at["modelled_ns"]] / median : 0)
		line = f[1]
		for (i = 2; i <= fields; i++) line = line "," f[i]
		print line
	}
}' "$1"
