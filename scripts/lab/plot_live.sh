#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Charts of a folder that live.sh has filled, one for each program with a predicted series:
#	plot_live.sh FOLDER [FORMAT]	-> FOLDER/img/live_PROGRAM.svg
set -euo pipefail
plot=$(dirname "$0")/../plot
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [svg|png|pdf]" >&2; exit 2; }
folder=$1 format=${2:-svg}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder/img"
for program in $(awk -F, 'NR > 1 && !seen[$1]++ { print $1 }' "$folder/series.csv"); do
	awk -F, -v p="$program" 'BEGIN { n["pytorch"] = 1; n["pytorch:expandable_segments:True"] = 2; n["vmm"] = 3; n["tlsf"] = 4 }
		$1 == p && $2 in n { print n[$2] ",," $3 "," $4 "," $5 }' "$folder/series.csv" > "$work/predicted"
	awk -F, -v p="$program" 'BEGIN { n["default"] = 1; n["expandable"] = 2; n["cufrag vmm"] = 3; n["cufrag tlsf"] = 4 }
		$1 == p && $2 in n { print n[$2] ",," $3 "," $4 "," $5 "," $6 }' "$folder/samples.csv" > "$work/measured"
	[ -s "$work/predicted" ] && [ -s "$work/measured" ] || continue
	gnuplot -c "$plot/live.gp" "$work/predicted" "$folder/img/live_$program.$format" "$format" \
		"Predicted and measured: $program" "lines: from the recording; marks: on the card" "$work/measured"
done
