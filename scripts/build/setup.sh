#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing on a Debian or Ubuntu system, and says what:
#	setup.sh	to build, test and draw
#	setup.sh wheel	also what `make wheel` needs
#	setup.sh ci	also the second compiler, the analysers, valgrind, and a browser and Prometheus if there are any
# Does nothing, and needs no network, when everything is there.
set -euo pipefail

have_tool() { command -v "$1" > /dev/null 2>&1; }

# A line for each package: how to test for it, the name of the thing, the package where that is another.
needs() {
	printf 'tool %s\n' gcc make pkg-config python3 'gnuplot gnuplot-nox'
	printf 'header %s\n' 'stdio.h libc6-dev' 'cmocka.h libcmocka-dev' 'archive.h libarchive-dev' 'zstd.h libzstd-dev' \
		'jansson.h libjansson-dev' 'sqlite3.h libsqlite3-dev' 'xxhash.h libxxhash-dev' 'yaml.h libyaml-dev' 'microhttpd.h libmicrohttpd-dev' \
		'nettle/sha2.h nettle-dev'
	echo library libncursesw.so.6 libncursesw6
	case $1 in
	wheel) printf '%s\n' 'module setuptools python3-setuptools' 'module wheel python3-wheel' ;;
	ci)
		printf 'tool %s\n' clang 'ld.lld lld' clang-tidy clang-format cppcheck shellcheck valgrind git curl \
			'ctags universal-ctags'
		echo clangrt asan libclang-rt ;;
	esac
}

# A header is there when the preprocessor finds it; cmocka.h wants others before it.
have() {
	case $1 in
	tool) have_tool "$2" ;;
	library) have_tool gcc && [[ $(gcc -print-file-name="$2") = /* ]] ;;
	module) /usr/bin/python3 -c "import $2" > /dev/null 2>&1 ;;
	header) have_tool gcc && printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h "$2" | gcc -E -x c - > /dev/null 2>&1 ;;
	clangrt)
		have_tool clang && echo 'int main(void){return 0;}' |
			clang -fsanitize=address,undefined -x c - -o /dev/null > /dev/null 2>&1 ;;
	esac
}

missing_packages() {
	local kind name package
	needs "$1" | while read -r kind name package; do
		have "$kind" "$name" || echo "${package:-$name}"
	done
}

root=()
install() {
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends \
		"$@" >&2 < /dev/null
}

# What a system may not have as a package: the tests that want it are skipped without it. (On
# Ubuntu Chromium is no package that works without snap.)
wish() { # WHAT_FOR PACKAGE...
	local what=$1
	shift
	if ! apt-cache policy "$1" 2> /dev/null | grep -q 'Candidate: [0-9]'; then
		echo "setup: no package $1 here; $what will be skipped" >&2
		return 0
	fi
	echo "setup: installing $1" >&2
	install "$@" || echo "setup: $1 was not installed" >&2
}

wishes() {
	have_tool chromium || have_tool chromium-browser || have_tool google-chrome ||
		wish 'the tests of report.html in a browser' chromium fonts-dejavu-core
	/usr/bin/python3 -c 'import numpy' > /dev/null 2>&1 || wish 'the tests of notebooks' python3-numpy
	python3 -c 'import ensurepip' > /dev/null 2>&1 || wish 'the jobs of frameworks' python3-venv
	have_tool promtool || wish "monitor's test with Prometheus" prometheus
}

# ruff, at the release that .ruff.toml was written for, into build/ci-ruff
install_ruff() {
	local env=build/ci-ruff
	have_tool ruff || [ -x $env/bin/ruff ] || { python3 -m venv $env && $env/bin/pip install -q 'ruff==0.17.*' >&2; } ||
		{ rm -rf $env; echo 'setup: ruff was not installed; lint-python will be skipped' >&2; }
}

# The sanitizer runtime of clang has a package of its own on some releases,
# named after clang's version, and comes with clang itself on the others.
resolve() {
	local version
	for package in "$@"; do
		if [ "$package" = libclang-rt ]; then
			version=$(apt-cache depends clang 2> /dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
			package="libclang-rt-$version-dev"
			apt-cache show "$package" > /dev/null 2>&1 || continue
		fi
		echo "$package"
	done
}

main() {
	local mode=${1:-build} missing
	case $mode in
	build | wheel | ci) ;;
	*) echo "setup: unknown mode '$mode'; known are build, wheel, ci" >&2; exit 2 ;;
	esac
	mapfile -t missing < <(missing_packages "$mode")
	if [ ${#missing[@]} -gt 0 ]; then
		have_tool apt-get || { echo "setup: missing: ${missing[*]} (names of Debian); install them and run this again" >&2; exit 1; }
		if [ "$(id -u)" -ne 0 ]; then
			have_tool sudo || { echo "setup: missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
			root=(sudo)
		fi
		echo "setup: installing ${missing[*]}" >&2
		"${root[@]}" apt-get -q -o Dpkg::Use-Pty=0 update >&2 || echo 'setup: apt-get update failed, going on with the lists at hand' >&2
		mapfile -t missing < <(resolve "${missing[@]}")
		install "${missing[@]}"
		mapfile -t missing < <(missing_packages "$mode")
		[ ${#missing[@]} -eq 0 ] || { echo "setup: still missing after the installation: ${missing[*]}" >&2; exit 1; }
	fi
	[ "$mode" = ci ] || return 0
	[ "$(id -u)" -ne 0 ] && [ ${#root[@]} -eq 0 ] || ! have_tool apt-get || wishes
	install_ruff
}

main "$@"
