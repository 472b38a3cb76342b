#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel of src/inject/python with the programs of `make wheel-programs`: wheel.sh BUILD VERSION
# Its tag is the oldest glibc that has what the programs ask for. Libraries of others are inside the
# program; their licences go with it. Exits with 77 where Python cannot build wheels here, and says
# what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 version=$2 programs=$1/glibc-2.28

# the first Python that has setuptools and, where that is old, wheel
python=
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
	"$candidate" -c 'import setuptools
try: import setuptools.command.bdist_wheel
except ImportError: import wheel' > /dev/null 2>&1 && { python=$candidate; break; }
done
[ -n "$python" ] || { echo "wheel: no Python with setuptools and wheel (Debian: python3-setuptools python3-wheel)" >&2; exit 77; }

# the same sources make the same wheel
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 315532800)}
work=$build/wheel/src
rm -rf "$build/wheel"
mkdir -p "$work"/cufrag/{share/cufrag/{plot,traces},licenses}
cp src/inject/python/{pyproject.toml,setup.py,README.md} "$work/"
cp src/inject/python/cufrag/{*.py,py.typed} "$work/cufrag/"
cp scripts/plot/*.gp "$work/cufrag/share/cufrag/plot/"
cp traces/suite.json "$work/cufrag/share/cufrag/traces/" # recordings: in the repository alone, a wheel has 4 MB
cp LICENSE "$work/cufrag/licenses/cufrag"
cp "$programs/cufrag" "$work/cufrag/"
cp -r "$programs/share/cufrag/inject" "$work/cufrag/share/cufrag/"
rm -rf "$work"/cufrag/share/cufrag/inject/{,*/}__pycache__
strip --strip-debug "$work/cufrag/cufrag"
for library in jansson microhttpd nettle sqlite3 xxhash yaml zstd; do
	package=$(dpkg -S "*/lib$library.a" 2> /dev/null | sed -n 's/^\([^:]*\):.*/\1/p' | head -n 1)
	cp "/usr/share/doc/$package/copyright" "$work/cufrag/licenses/$library" ||
		{ echo "wheel: no licence of $library found; it is inside the program" >&2; exit 1; }
done
oldest=$(objdump -T "$programs"/{cufrag,*.so} | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
(cd "$work" && CUFRAG_VERSION=$version CUFRAG_PLATFORM=manylinux_2_${oldest#GLIBC_2.}_$(uname -m) \
	"$python" -c 'import setuptools.build_meta as backend; backend.build_wheel("..")') > "$build/wheel/log" 2>&1 ||
	{ cat "$build/wheel/log" >&2; exit 1; }
ls "$build"/wheel/cufrag-*.whl
