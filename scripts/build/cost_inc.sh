#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the built-in cost profiles out of profile files, for make; the folder names the card:
#	cost_inc.sh results/h100/profile.csv results/h200/profile.csv > build/release/gen/cost_list.inc
# The names of calls and parts are looked up in the headers that list them.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { echo "usage: $0 results/CARD/profile.csv..." >&2; exit 2; }

awk -F, '
# X(NAME, "text"...) of the two lists: text -> symbol
FILENAME ~ /\.h$/ {
	if (match($0, /X\([A-Z_]+, "[^"]+"/)) {
		split(substr($0, RSTART + 2, RLENGTH - 3), part, /, "/)
		symbol[part[2]] = (FILENAME ~ /cost\.h$/ ? "FRAG_COST_" : "FRAG_CALL_") part[1]
	}
	next
}
FNR == 1 {
	n = split(FILENAME, part, "/")
	card = cards[++files] = part[n - 1]
}
/^#/ || /^call,/ || !NF { next }
{
	if (!($1 in symbol)) {
		print "cost_inc: unknown call " $1 > "/dev/stderr"
		failed = 1
		exit 1
	}
	if (!((card, $1) in count))
		order[card, ++items[card]] = $1
	n = count[card, $1]++
	bytes[card, $1, n] = $2
	ns[card, $1, n] = $3
}
function slope(card, item, i) {
	if (count[card, item] < 2)
		return 0
	if (i == count[card, item] - 1)
		i--
	return (ns[card, item, i + 1] - ns[card, item, i]) / (bytes[card, item, i + 1] - bytes[card, item, i])
}
END {
	if (failed)
		exit 1
	print "/* The built-in profiles: bytes, ns, ns per byte up to the next point. How measured: docs/measuring.md. */"
	for (f = 1; f <= files; f++) {
		card = cards[f]
		for (k = 1; k <= items[card]; k++) {
			item = order[card, k]
			printf "static const struct frag_cost_point %s_%d[] = { /* %s */\n", card, k, item
			for (i = 0; i < count[card, item]; i++)
				printf "\t{ %s, %s, %.17g },\n", bytes[card, item, i], ns[card, item, i], slope(card, item, i)
			print "};"
		}
	}
	print "static const struct {\n\tconst char *card;\n\tstruct frag_cost cost;\n} built_in[] = {"
	for (f = 1; f <= files; f++) {
		card = cards[f]
		printf "\t{ \"%s\", { .curves = {\n", card
		for (k = 1; k <= items[card]; k++)
			printf "\t\t[%s] = { %d, %s_%d },\n", symbol[order[card, k]], count[card, order[card, k]], card, k
		print "\t} } },"
	}
	print "};"
}' src/include/frag/device.h src/device/sim/cost.h "$@"
