#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Debian package of what BUILD_FOLDER holds, into BUILD_FOLDER/deb, made by debhelper from scripts/build/debian:
#	deb.sh BUILD_FOLDER VERSION
set -euo pipefail
cd "$(dirname "$0")/../.."
built=$(realpath "${1:?usage: deb.sh BUILD_FOLDER VERSION}")
version=${2:?usage: deb.sh BUILD_FOLDER VERSION}
command -v dh > /dev/null && command -v dpkg-buildpackage > /dev/null ||
	{ echo 'deb: debhelper is missing: apt-get install debhelper' >&2; exit 4; }

rm -rf "$built/deb"
tree=$built/deb/cufrag-$version
mkdir -p "$tree"
cp -r Makefile README.md CHANGELOG.md LICENSE docs policies scripts src traces "$tree"
cp -r --parents results/pretend/img results/published/img "$tree"
[ ! -d kernels ] || cp -r kernels "$tree"
cp -r scripts/build/debian "$tree/debian"
# the date of the package is that of the sources: the same sources, the same package
date=$(git log -1 --format=%aD 2> /dev/null || date -R -r CHANGELOG.md)
printf 'cufrag (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
	"$version" "$(sed -n 's/^Maintainer: //p' "$tree/debian/control")" "$date" > "$tree/debian/changelog"
(cd "$tree" && CUFRAG_BUILT=$built dpkg-buildpackage -us -uc -b -d) > "$built/deb/log" 2>&1 ||
	{ tail -n 30 "$built/deb/log" >&2; echo "deb: failed; all of it: $built/deb/log" >&2; exit 4; }
rm -rf "$tree"
echo "deb: $(ls "$built"/deb/cufrag_*.deb)"
