#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER, with which programs linked here start on glibc 2.28 and newer: old_glibc.sh FOLDER CC
# Link with -L FOLDER: its libc.so and libm.so have no code, only the names and versions that this system's libraries
# already had in 2.28, so the linker asks for those. old_glibc_*.c have what exists only under newer names.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1 cc=$2
mkdir -p "$folder"

# stub NAME: nm prints "address size type name@version"; of each name the newest version up to 2.28 counts
stub() {
	nm -D -S --with-symbol-versions --defined-only "$($cc -print-file-name="$1")" | awk -v asm="$folder/$1.S" -v map="$folder/$1.map" '
		{ n = split($NF, part, /@+/) }
		n == 2 && part[2] ~ /^GLIBC_2\.[0-9.]+$/ {
			split(part[2], v, "."); order = v[2] * 100 + v[3]
			if (v[2] <= 28 && order >= best[part[1]]) {
				best[part[1]] = order; version[part[1]] = part[2]
				size[part[1]] = NF == 4 && $3 ~ /[BDGRSVbdgrs]/ ? "0x" $2 : ""
			}
		}
		END {
			print ".section .note.GNU-stack,\"\",%progbits\n.data" > asm
			for (name in version) {
				kind = size[name] == "" ? "function" : "object"
				printf ".globl %s\n.type %s,@%s\n%s: .zero %s\n.size %s,.-%s\n", name, name, kind, name, size[name] == "" ? 1 : size[name], name, name > asm
				names[version[name]] = names[version[name]] " " name ";"
			}
			for (node in names) print node " {" names[node] " };" > map
		}'
	$cc -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script,"$folder/$1.map" -o "$folder/$1" "$folder/$1.S"
}

stub libc.so.6
stub libm.so.6
ln -sf libm.so.6 "$folder/libm.so"
# whose functions are in libc.so.6 since 2.34; older systems need to load them
for name in libpthread.so.0 libdl.so.2 librt.so.1; do
	$cc -shared -nostdlib -Wl,-soname,$name -o "$folder/${name%.*}" -x c /dev/null
done
rm -f "$folder/libold.a"
for part in start stat; do
	$cc -O2 -fPIC -fvisibility=hidden -Wall -Wextra -c -o "$folder/$part.o" scripts/build/old_glibc_$part.c
	ar rcs "$folder/libold.a" "$folder/$part.o"
done
echo "GROUP ( $PWD/$folder/libold.a $PWD/$folder/libc.so.6 $($cc -print-file-name=libc_nonshared.a) AS_NEEDED ( $($cc -print-file-name=ld-linux-x86-64.so.2) ) )" > "$folder/libc.so"
