#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Chart of the programs that nogpu_compare.py has compared, smallest first:
#	plot_nogpu.sh FOLDER [FORMAT]	FOLDER/programs.csv -> FOLDER/img/programs.svg
set -euo pipefail
plot=$(dirname "$0")/../plot
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [svg|png|pdf]" >&2; exit 2; }
folder=$1 format=${2:-svg}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
mkdir -p "$folder/img"
{ head -n 1 "$folder/programs.csv"; tail -n +2 "$folder/programs.csv" | sort -t, -k 7n; } > "$rows"
gnuplot -c "$plot/nogpu.gp" "$rows" "$folder/img/programs.$format" "$format" "The same programs, on a card and without one" \
	"torch 2.11.0; H200 with driver 580.159.04, pretended h200" ""
