#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lines of code by folder, of the files that git knows:
#	lines.sh [TREE-ISH]	the working tree, or that of a commit
# Counts what somebody writes: C, CUDA, Python, shell, gnuplot, tables of rules and cases. Leaves out what programs write:
# tables of measurements (.csv, .inc beside them), recordings, fuzz corpora, snapshots, expected outputs (in tables of
# cases the lines that begin with >, ! or +).
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=${1:-}

list() { if [ -n "$tree" ]; then git ls-tree -r --name-only "$tree"; else git ls-files -co --exclude-standard; fi; }
text() { if [ -n "$tree" ]; then git show "$tree:$1"; else cat "$1"; fi; }
written() { case $1 in *.cases) text "$1" | grep -v '^[[:space:]]*[>!+]' ;; *) text "$1" ;; esac; }

list | grep -E '^(src|policies|kernels|scripts|tests)/' |
	grep -E '\.(c|h|cu|cuh|cpp|def|py|sh|gp|gpi|css|js|html|in|rules|cases|toml)$' |
	while read -r file; do
		[ -n "$tree" ] || [ -f "$file" ] || continue
		printf '%s %s\n' "$file" "$(written "$file" | wc -l)"
	done | awk '
	{
		n = split($1, part, "/")
		folder = n > 2 ? part[1] "/" part[2] : part[1]
		lines[folder] += $2; files[folder]++
		top[part[1]] += $2; topfiles[part[1]]++
		all += $2; allfiles++
	}
	END {
		printf "%-24s %7s %6s\n", "folder", "lines", "files"
		for (f in lines) printf "%-24s %7d %6d\n", f, lines[f], files[f] | "sort"
		close("sort")
		print ""
		for (f in top) printf "%-24s %7d %6d\n", f, top[f], topfiles[f] | "sort"
		close("sort")
		printf "%-24s %7d %6d\n", "all", all, allfiles
	}'
