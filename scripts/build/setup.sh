#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing on a Debian or Ubuntu system, and says what:
#	setup.sh	to build, test and draw
#	setup.sh wheel	also what `make wheel` needs
#	setup.sh ci	also the second compiler, the analysers, valgrind, and a browser and Prometheus if there are any
# Does nothing, and needs no network, when everything is there.
set -euo pipefail

have_tool() { command -v "$1" > /dev/null 2>&1; }

# A header is there when the preprocessor finds it; without a compiler nothing is.
have_header() {
	have_tool gcc && echo "#include <$1>" | gcc -E -x c - > /dev/null 2>&1
}

# name of the thing | how to test for it | Debian package
needs() {
	cat <<-'END'
	tool   gcc           gcc
	header stdio.h       libc6-dev
	tool   make          make
	tool   pkg-config    pkg-config
	tool   gnuplot       gnuplot-nox
	header cmocka.h      libcmocka-dev
	tool   python3       python3
	header archive.h     libarchive-dev
	header zstd.h        libzstd-dev
	header jansson.h     libjansson-dev
	header sqlite3.h     libsqlite3-dev
	header xxhash.h      libxxhash-dev
	header yaml.h        libyaml-dev
	header microhttpd.h  libmicrohttpd-dev
	header curses.h      libncurses-dev
	END
	[ "$1" = wheel ] && cat <<-'END'
	module setuptools    python3-setuptools
	module wheel         python3-wheel
	END
	[ "$1" = ci ] && cat <<-'END'
	tool   clang         clang
	tool   ld.lld        lld
	tool   clang-tidy    clang-tidy
	tool   clang-format  clang-format
	tool   cppcheck      cppcheck
	tool   shellcheck    shellcheck
	tool   valgrind      valgrind
	tool   git           git
	tool   curl          curl
	tool   ctags         universal-ctags
	clangrt asan         libclang-rt
	END
	return 0
}

# What a system may not have as a package: the tests that want it are skipped without it. (On
# Ubuntu Chromium is no package that works without snap.)
install_wish() { # WHAT_FOR PACKAGE... -- COMMAND...
	local what=$1 packages=()
	shift
	while [ "$1" != -- ]; do packages+=("$1"); shift; done
	shift
	if ! apt-cache policy "${packages[0]}" 2> /dev/null | grep -q 'Candidate: [0-9]'; then
		echo "setup: no package ${packages[0]} here; $what will be skipped" >&2
		return 0
	fi
	echo "setup: installing ${packages[0]}" >&2
	"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends \
		"${packages[@]}" >&2 < /dev/null || echo "setup: ${packages[0]} was not installed" >&2
}

# ruff, at the release that .ruff.toml was written for, into build/ci-ruff
install_ruff() {
	local env=build/ci-ruff
	have_tool ruff || [ -x $env/bin/ruff ] || { python3 -m venv $env && $env/bin/pip install -q 'ruff==0.17.*' >&2; } ||
		{ rm -rf $env; echo 'setup: ruff was not installed; lint-python will be skipped' >&2; }
}

install_wishes() {
	have_tool chromium || have_tool chromium-browser || have_tool google-chrome ||
		install_wish 'the tests of report.html in a browser' chromium fonts-dejavu-core -- "$@"
	/usr/bin/python3 -c 'import numpy' > /dev/null 2>&1 || install_wish 'the tests of notebooks' python3-numpy -- "$@"
	python3 -c 'import ensurepip' > /dev/null 2>&1 || install_wish 'the jobs of frameworks' python3-venv -- "$@"
	have_tool promtool || install_wish "monitor's test with Prometheus" prometheus -- "$@"
}

# cmocka.h wants other headers before it
have() {
	case $1 in
	tool) have_tool "$2" ;;
	module) /usr/bin/python3 -c "import $2" > /dev/null 2>&1 ;;
	header)
		if [ "$2" = cmocka.h ]; then
			have_tool gcc && printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h |
				gcc -E -x c - > /dev/null 2>&1
		else
			have_header "$2"
		fi ;;
	clangrt)
		have_tool clang && echo 'int main(void){return 0;}' |
			clang -fsanitize=address,undefined -x c - -o /dev/null > /dev/null 2>&1 ;;
	esac
}

missing_packages() {
	local kind name package
	needs "$1" | while read -r kind name package; do
		have "$kind" "$name" || echo "$package"
	done
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
	local mode=${1:-build} missing root=()
	case $mode in
	build | wheel | ci) ;;
	*) echo "setup: unknown mode '$mode'; known are build, wheel, ci" >&2; exit 2 ;;
	esac
	mapfile -t missing < <(missing_packages "$mode")
	if [ ${#missing[@]} -eq 0 ]; then
		[ "$mode" = ci ] || return 0
		[ "$(id -u)" -ne 0 ] || ! have_tool apt-get || install_wishes
		install_ruff
		return 0
	fi

	if ! have_tool apt-get; then
		echo "setup: missing: ${missing[*]} (names of Debian); install them and run this again" >&2
		exit 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		have_tool sudo || { echo "setup: missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
		root=(sudo)
	fi
	echo "setup: installing ${missing[*]}" >&2
	"${root[@]}" apt-get -q -o Dpkg::Use-Pty=0 update >&2 || echo 'setup: apt-get update failed, going on with the lists at hand' >&2
	mapfile -t missing < <(resolve "${missing[@]}")
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 install -y \
		--no-install-recommends "${missing[@]}" >&2 < /dev/null

	mapfile -t missing < <(missing_packages "$mode")
	[ ${#missing[@]} -eq 0 ] || { echo "setup: still missing after the installation: ${missing[*]}" >&2; exit 1; }
	[ "$mode" != ci ] || { install_wishes "${root[@]}"; install_ruff; }
}

main "$@"
