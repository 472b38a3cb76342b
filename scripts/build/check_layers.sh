#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Dependencies point one way. Checks every #include of the sources against the list under "Layers" in
# docs/architecture.md: a folder, and the folders that it may include; and the picture of the house there against it.
#	- a quoted include names a header beside the file, or one of a folder that is allowed
#	- a command (src/cli/cmd_NAME.c, NAME_*.c, NAME/) includes no header of another command
#	- outside of src/pretend, its one header pretend.h is included and no other
#	- headers in src/include/frag include <frag/…> and the C library only (and metrics.def)
#	- CUDA and NVML headers appear in src/device/cuda/ and kernels/ only
#	- no circle between files or folders but those in docs/architecture.md (check_circles.py)
set -u
cd "$(dirname "$0")/../.." || exit 1

find src policies kernels \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) -print0 2> /dev/null |
	sort -z | xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include' | awk -F: '
	function read_layers(  line, heading, part, n, i) {
		while ((getline line < "docs/architecture.md") > 0) {
			if (line ~ /^## /) heading = substr(line, 4)
			if (heading == "The house" && line ~ /^    /) picture[++rows] = line
			if (heading != "Layers" || line !~ /^    [a-z]/) continue
			n = split(line, part, " ")
			for (i = 1; i <= n; i++) {
				allowed[part[1], part[i]] = 1
				if (part[i] ~ /^pretend\// && part[1] !~ /^pretend/)
					complain_picture(part[1] " may include pretend.h only, not " part[i])
			}
			known[part[1]] = 1
		}
	}
	function complain_picture(text) {
		print "docs/architecture.md, The house: " text > "/dev/stderr"
		bad++
	}
	# The picture names every folder of the list, each above those that it may include.
	function check_picture(  i, k, n, words, row, pair, part) {
		for (i = 1; i <= rows; i++) {
			n = split(picture[i], words, /   *|: |\. /)
			for (k = 1; k <= n; k++) {
				sub(/\/$/, "", words[k])
				if (words[k] in known && !(words[k] in row)) row[words[k]] = i
			}
		}
		for (k in known)
			if (!(k in row) && k !~ /^inject|^pretend|^kernels$|^main|\//) complain_picture(k " is missing")
		for (pair in allowed) {
			split(pair, part, SUBSEP)
			if (part[1] != part[2] && part[1] != "pretend" && part[1] in row && part[2] in row && row[part[1]] >= row[part[2]])
				complain_picture(part[1] " is not above " part[2] ", which it may include")
		}
	}
	function read_files(  path, part, n) {
		while (("find src policies kernels -name \"*.h\" -o -name \"*.cuh\" -o -name \"*.def\" -o -name \"*.inc\" 2> /dev/null" | getline path) > 0) {
			n = split(path, part, "/")
			where[part[n]] = where[part[n]] " " path
		}
		while (("find src/cli -name \"cmd_*.c\" 2> /dev/null" | getline path) > 0) {
			gsub(/.*\/cmd_|\.c$/, "", path)
			commands[path] = 1
		}
	}
	BEGIN { read_layers(); read_files() }
	function complain(text) {
		print $1 ":" $2 ": " text > "/dev/stderr"
		bad++
	}
	function layer_of(path,  part) {
		split(path, part, "/")
		if (part[1] != "src")
			return part[1]
		if (part[2] == "pretend" && part[3] ~ /\./) return part[2]
		if (part[2] ~ /^(inject|pretend)$/ || path ~ /^src\/trace\/writers\//) return part[2] "/" part[3]
		return part[2]
	}
	# The command whose file this is; "" where it is shared, or not of src/cli.
	function command_of(path,  name) {
		if (path !~ /^src\/cli\//) return ""
		name = substr(path, 9)
		if (name ~ /\//) {
			sub(/\/.*/, "", name)
		} else {
			gsub(/^cmd_|\.[a-z]+$/, "", name)
			while (!(name in commands) && name ~ /_/) sub(/_[^_]*$/, "", name)
		}
		return name in commands ? name : ""
	}
	# The file that a quoted name reaches: beside the includer first, as the compiler does.
	function target(name, file,  dir, n, list, i, part) {
		n = split(name, part, "/")
		n = split(where[part[n]], list, " ")
		sub(/^(\.\.\/)+/, "", name)
		dir = file
		sub(/[^\/]*$/, "", dir)
		for (i = 1; i <= n; i++)
			if (list[i] == dir name)
				return list[i]
		for (i = 1; i <= n; i++)
			if (substr(list[i], length(list[i]) - length(name) + 1) == name)
				return list[i]
		return "unknown"
	}
	function check_system(name, file, layer) {
		if (name ~ /^(cuda|nvml|cu[A-Z]|nvtx|driver_types|vector_types)/ && file !~ /^src\/device\/cuda\// && layer != "kernels")
			complain("<" name "> belongs into src/device/cuda/ and kernels/ only")
		if (layer == "include" && name ~ /(archive|zstd|jansson|xxhash|yaml|glib)/)
			complain("public headers do not include <" name ">")
	}
	function check_quoted(name, file, layer,  path, to, mine, theirs) {
		if (layer == "include") {
			if (name !~ /metrics\.def$/)
				complain("public headers include each other as <frag/…>, not \"" name "\"")
			return
		}
		if (name ~ /_(list|page)\.inc$/) return # generated
		path = target(name, file)
		to = layer_of(path)
		if (!(layer in known))
			complain(layer " has no line under Layers in docs/architecture.md")
		else if (!((layer, to) in allowed))
			complain(layer " must not depend on " to " (\"" name "\")")
		mine = command_of(file)
		theirs = command_of(path)
		if (mine != "" && theirs != "" && mine != theirs)
			complain("command " mine " must not include a header of command " theirs " (\"" name "\")")
	}
	{
		text = $0
		sub(/^[^:]*:[^:]*:/, "", text)
		checked++
		if (match(text, /<[^>]*>/))
			check_system(substr(text, RSTART + 1, RLENGTH - 2), $1, layer_of($1))
		else if (match(text, /"[^"]*"/))
			check_quoted(substr(text, RSTART + 1, RLENGTH - 2), $1, layer_of($1))
	}
	END {
		if (rows) check_picture()
		if (!checked) { print "check_layers: found no includes" > "/dev/stderr"; exit 1 }
		if (bad) { print "check_layers: " bad " wrong dependencies" > "/dev/stderr"; exit 1 }
		print "layers: " checked " includes, all in the right direction"
	}' || exit 1

command -v python3 > /dev/null || { echo 'circles: not checked, there is no python3'; exit 0; }
python3 scripts/build/check_circles.py
