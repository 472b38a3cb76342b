#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER, with which programs linked here start on glibc 2.28 and newer: old_glibc.sh FOLDER CC
# Link with -L FOLDER: its libc.so and libm.so have no code, only the names and versions that this system's libraries
# already had in 2.28, so the linker asks for those. old_glibc.c has what exists only under newer names.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p "$1"
folder=$(realpath "$1") cc=$2

# stub NAME: nm prints "address size type name@version"; of each name the newest version up to 2.28 counts
stub() {
	nm -D -S --with-symbol-versions --defined-only "$($cc -print-file-name="$1")" | awk -v asm="$folder/$1.S" -v map="$folder/$1.map" '
		split($NF, part, /@+/) == 2 && split(part[2], v, ".") > 1 && v[2] <= 28 && v[2] * 100 + v[3] >= best[part[1]] {
			best[part[1]] = v[2] * 100 + v[3]
			version[part[1]] = part[2]
			line[part[1]] = $3 ~ /[BDGRSV]/ ? "object\n" part[1] ": .zero 0x" $2 : "function\n" part[1] ": .zero 1"
		}
		END {
			print ".section .note.GNU-stack,\"\",%progbits\n.data" > asm
			for (name in version) {
				printf ".globl %s\n.type %s,@%s\n.size %s,.-%s\n", name, name, line[name], name, name > asm
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
for part in START STATS; do
	$cc -O2 -fPIC -fvisibility=hidden -Wall -Wextra -D$part -c -o "$folder/$part.o" scripts/build/old_glibc.c
done
# libmicrohttpd's functions for TLS, which cufrag does not use: Debian has no p11-kit to link statically, and so no GnuTLS
nm -u "$($cc -print-file-name=libmicrohttpd.a)" 2> /dev/null | grep -o 'gnutls_[a-z0-9_]*' | sort -u |
	sed 's/.*/int &(void); int &(void) { return -1; }/' | $cc -fPIC -fvisibility=hidden -x c -c -o "$folder/STATIC_TLS.o" -
rm -f "$folder/libold.a" && ar rcs "$folder/libold.a" "$folder"/STA*.o
echo "GROUP ( \"$folder/libold.a\" \"$folder/libc.so.6\" $($cc -print-file-name=libc_nonshared.a) AS_NEEDED ( $($cc -print-file-name=ld-linux-x86-64.so.2) ) )" > "$folder/libc.so"
