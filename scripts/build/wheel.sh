#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel of src/inside/python with the program and its libraries: wheel.sh BUILD VERSION
# The program looks for libraries in cufrag.libs beside itself: a wheel brings those that are not part of every Linux.
# Exits with 77 where Python cannot build wheels here, and says what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 version=$2

# the first Python that has setuptools and, where that is old, wheel
python=
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
	"$candidate" -c 'import setuptools
try: import setuptools.command.bdist_wheel
except ImportError: import wheel' > /dev/null 2>&1 && { python=$candidate; break; }
done
[ -n "$python" ] || { echo "wheel: no Python with setuptools and wheel (Debian: python3-setuptools python3-wheel)" >&2; exit 77; }

work=$build/wheel/src
rm -rf "$build/wheel"
mkdir -p "$work/cufrag/cufrag.libs" "$work/cufrag/licenses"
cp src/inside/python/pyproject.toml src/inside/python/setup.py "$work/"
cp src/inside/python/cufrag/*.py "$work/cufrag/"
cp LICENSE "$work/cufrag/licenses/cufrag"
cp "$build/libcufrag_torch.so" "$build/libcufrag_record.so" "$work/cufrag/"
cp "$build/cufrag" "$work/cufrag/cufrag"
ldd "$work/cufrag/cufrag" | awk '/=> \// { print $1, $3 }' | while read -r name file; do
	case $name in libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so* | ld-linux*) continue ;; esac
	cp -L "$file" "$work/cufrag/cufrag.libs/$name"
	package=$(dpkg -S "$(readlink -f "$file")" 2> /dev/null | sed -n 's/^\([^:]*\):.*/\1/p' | head -n 1)
	[ -z "$package" ] || cp "/usr/share/doc/$package/copyright" "$work/cufrag/licenses/$package" 2> /dev/null || :
done
strip --strip-debug "$work/cufrag/cufrag" 2> /dev/null || :
(cd "$work" && CUFRAG_VERSION=$version "$python" -c 'import setuptools.build_meta as backend; backend.build_wheel("..")') > "$build/wheel/log" 2>&1 ||
	{ cat "$build/wheel/log" >&2; exit 1; }
ls "$build"/wheel/cufrag-*.whl
