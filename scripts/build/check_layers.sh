#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Dependencies point one way:
#	base <- lib <- answer, device, trace, metrics <- replay <- verify <- recording <- plan <- report <- explain <- fleet <- cli <- main
#	in the user's process (src/inside): device <- nogpu; replay <- live; base <- record; mpi <- sweep; trace <- launch <- cli
# Checks every #include of the sources against that:
#	- a quoted include names a header beside the file, or one of a layer that is allowed
#	- policies include <frag/…>, src/lib and files of policies/ only
#	- headers in src/include/frag include <frag/…> and the C library only (and metrics.def)
#	- CUDA and NVML headers appear in src/device/cuda/ and kernels/ only
#	- no circle between files or folders but those in docs/architecture.md (check_circles.py)
set -u
cd "$(dirname "$0")/../.." || exit 1

find src policies kernels \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) -print0 2> /dev/null |
	sort -z | xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include' | awk -F: '
	BEGIN {
		allowed["base"] = "base"
		allowed["lib"] = "lib base"
		allowed["answer"] = "answer lib base"
		allowed["device"] = "device lib base"
		allowed["inside/nogpu"] = "inside/nogpu device lib base"
		allowed["inside/record"] = "inside/record base"
		allowed["inside/start"] = "inside/start"
		allowed["trace"] = "trace lib base"
		allowed["metrics"] = "metrics lib base"
		allowed["replay"] = "replay trace device metrics lib base"
		allowed["inside/live"] = "inside/live replay device metrics lib base"
		allowed["verify"] = "verify replay trace device metrics lib base answer"
		allowed["recording"] = "recording verify replay trace device metrics lib base answer"
		allowed["plan"] = "plan recording verify replay trace device metrics lib base answer"
		allowed["report"] = "report plan recording verify replay trace device metrics lib base answer"
		allowed["session"] = "session report plan recording verify replay trace device metrics lib base answer"
		allowed["explain"] = "explain report plan recording verify replay trace device metrics lib base answer"
		allowed["fleet"] = "fleet report plan recording verify replay trace device metrics lib base answer"
		allowed["launch"] = "launch trace device lib base"
		allowed["sweep"] = "sweep fleet report plan recording verify replay trace device metrics lib base answer mpi"
		allowed["mpi"] = "mpi"
		allowed["cli"] = "cli session sweep launch fleet explain report plan recording verify replay trace device metrics lib base mpi answer"
		allowed["main.c"] = "cli"
		while (("find src policies kernels -name \"*.h\" -o -name \"*.cuh\" -o -name \"*.def\" -o -name \"*.inc\" 2> /dev/null" | getline path) > 0) {
			n = split(path, part, "/")
			where[part[n]] = where[part[n]] " " path
		}
	}
	function complain(text) {
		print $1 ":" $2 ": " text > "/dev/stderr"
		bad++
	}
	function layer_of(path,  part) {
		split(path, part, "/")
		if (part[1] != "src")
			return part[1]
		return part[2] == "inside" ? "inside/" part[3] : part[2]
	}
	function may(from, to,  list, n, i) {
		n = split(allowed[from], list, " ")
		for (i = 1; i <= n; i++)
			if (list[i] == to)
				return 1
		return 0
	}
	# Which layer does the quoted name reach? Beside the file first, as the compiler does.
	function target(name, file,  dir, n, list, i, base, part) {
		if (name ~ /_list\.inc$/)
			return "generated"
		n = split(name, part, "/")
		base = part[n]
		sub(/^(\.\.\/)+/, "", name)
		dir = file
		sub(/[^\/]*$/, "", dir)
		n = split(where[base], list, " ")
		for (i = 1; i <= n; i++)
			if (list[i] == dir name)
				return layer_of(list[i])
		for (i = 1; i <= n; i++)
			if (substr(list[i], length(list[i]) - length(name) + 1) == name)
				return layer_of(list[i])
		return "unknown"
	}
	{
		file = $1
		text = $0
		sub(/^[^:]*:[^:]*:/, "", text)
		layer = layer_of(file)
		checked++
		if (match(text, /<[^>]*>/)) {
			name = substr(text, RSTART + 1, RLENGTH - 2)
			if (name ~ /^(cuda|nvml|cu[A-Z]|nvtx|driver_types|vector_types)/ &&
			    file !~ /^src\/device\/cuda\// && layer != "kernels")
				complain("<" name "> belongs into src/device/cuda/ and kernels/ only")
			if (layer == "include" && name ~ /(archive|zstd|jansson|xxhash|glib)/)
				complain("public headers do not include <" name ">")
			next
		}
		if (!match(text, /"[^"]*"/))
			next
		name = substr(text, RSTART + 1, RLENGTH - 2)
		to = target(name, file)
		if (layer == "policies" || layer == "kernels") {
			if (to != layer && !(to == "lib" && layer == "policies"))
				complain("policies and kernels include <frag/…> and their own folder only, not \"" name "\" (" to ")")
		} else if (layer == "include") {
			if (name !~ /metrics\.def$/)
				complain("public headers include each other as <frag/…>, not \"" name "\"")
		} else if (to != "generated" && !may(layer, to)) {
			complain(layer " must not depend on " to " (\"" name "\")")
		}
	}
	END {
		if (!checked) { print "check_layers: found no includes" > "/dev/stderr"; exit 1 }
		if (bad) { print "check_layers: " bad " wrong dependencies" > "/dev/stderr"; exit 1 }
		print "layers: " checked " includes, all in the right direction"
	}' || exit 1

command -v python3 > /dev/null || { echo 'circles: not checked, there is no python3'; exit 0; }
python3 scripts/build/check_circles.py
