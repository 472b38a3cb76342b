#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the built-in cost profile out of a profile file:
#	cost_inc.sh results/h200/profile.csv > src/device/sim/cost_h200.inc
# The names of calls and parts are looked up in the headers that list them. tests/unit/test_cost
# fails when the two are not the same any more.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -eq 1 ] || { echo "usage: $0 PROFILE.csv" >&2; exit 2; }

awk -F, -v source="$1" '
# X(NAME, "text"...) of the two lists: text -> symbol
FILENAME ~ /\.h$/ {
	if (match($0, /X\([A-Z_]+, "[^"]+"/)) {
		split(substr($0, RSTART + 2, RLENGTH - 3), part, /, "/)
		symbol[part[2]] = (FILENAME ~ /cost\.h$/ ? "FRAG_COST_" : "FRAG_CALL_") part[1]
	}
	next
}
/^#/ || /^call,/ || !NF { next }
{
	if (!($1 in symbol)) {
		print "cost_inc: unknown call " $1 > "/dev/stderr"
		failed = 1
		exit 1
	}
	if (!($1 in count))
		order[++items] = $1
	n = count[$1]++
	bytes[$1, n] = $2
	ns[$1, n] = $3
}
function slope(item, i) {
	if (count[item] < 2)
		return 0
	if (i == count[item] - 1)
		i--
	return (ns[item, i + 1] - ns[item, i]) / (bytes[item, i + 1] - bytes[item, i])
}
END {
	if (failed)
		exit 1
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/*"
	print " * The built-in profile, an NVIDIA H200 with driver 580.159.04 and CUDA 13.0: made by"
	print " * scripts/build/cost_inc.sh from " source ", do not edit. How that was measured: docs/measuring.md."
	print " * Included by cost.c only. bytes, ns, ns per byte up to the next point."
	print " */"
	print "/* clang-format off */"
	for (k = 1; k <= items; k++) {
		item = order[k]
		printf "static const struct frag_cost_point h200_%d[] = { /* %s */\n", k, item
		for (i = 0; i < count[item]; i++)
			printf "\t{ %s, %s, %.17g },\n", bytes[item, i], ns[item, i], slope(item, i)
		print "};"
	}
	print ""
	print "static const struct frag_cost cost_h200 = { .curves = {"
	for (k = 1; k <= items; k++)
		printf "\t[%s] = { %d, h200_%d },\n", symbol[order[k]], count[order[k]], k
	print "} };"
	print "/* clang-format on */"
}' src/include/frag/device.h src/device/sim/cost.h "$1"
