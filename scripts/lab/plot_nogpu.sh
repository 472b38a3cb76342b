#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Chart of the programs that nogpu_compare.py has compared:
#	plot_nogpu.sh FOLDER [FORMAT]	FOLDER/programs.csv -> FOLDER/img/programs.svg
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [svg|png|pdf]" >&2; exit 2; }
folder=$1 format=${2:-svg}
programs=$(($(wc -l < "$folder/programs.csv") - 1))
equal=$(awk -F, 'NR > 1 && $7 == $8 { n++ } END { print n + 0 }' "$folder/programs.csv")
mkdir -p "$folder/img"
gnuplot -c "$(dirname "$0")/../plot/nogpu.gp" "$folder/programs.csv" "$folder/img/programs.$format" "$format" \
	"Recorded without a GPU: how far peak reserved is off" \
	"$programs programs beside an H200; by default $equal equal to the byte" ""
