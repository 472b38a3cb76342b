#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of README.md again, from bundled traces, into docs/img/:
#	plots.sh PROGRAM
# The same program and traces give the same files.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${1:?usage: plots.sh PROGRAM}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p docs/img

# picture CHART FILE ARGUMENT...: one chart of a comparison
picture() {
	local chart=$1 file=$2
	shift 2
	rm -rf "$scratch/report"
	"$program" compare "$@" --no-host --formats svg --out "$scratch/report" > /dev/null
	cp "$scratch/report/$chart.svg" "docs/img/$file.svg"
	echo "plots: docs/img/$file.svg"
}

picture memory memory-varlen traces/varlen.default.cft
picture memory seeddemo traces/seeddemo.default.cft --policy pytorch
