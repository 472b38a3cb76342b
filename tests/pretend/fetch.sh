#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts PyTorch into a folder of its own, without the libraries of CUDA that it requires: fetch.sh FOLDER [LIST]
# LIST has a package in each line: with a version, it comes alone, otherwise with what it requires. Without LIST it is the
# newest PyTorch and its Triton. A folder that is whole, and was made from the same LIST, stays. Where no package can be
# fetched, or not all in ten minutes, the last line says so, and the status is 77.
set -uo pipefail
env=${1:?usage: fetch.sh FOLDER [LIST]}
wanted() {
	if [ $# = 2 ]; then sed '/^#/d' "$2"; else printf '%s\n' filelock typing-extensions sympy networkx jinja2 fsspec numpy setuptools 'torch>=2'; fi
}
install() {
	timeout 600 "$env/bin/pip" install -q --no-compile "$@"
	local status=$?
	[ $status != 124 ] || gone 'packages of Python come too slowly'
	return $status
}
gone() { echo "$1"; exit 77; }
same() { [ $# = 1 ] || wanted "$@" | cmp -s - "$env/list"; }
[ -x "$env/bin/python" ] && [ ! -e "$env/incomplete" ] && same "$@" && exit
[ ! -e "$env" ] || [ -e "$env/list" ] || [ -e "$env/incomplete" ] || { echo "$env holds something else"; exit 1; }
rm -rf "$env"
mkdir -p "$env" && touch "$env/incomplete"
python3 -m venv "$env" && install --retries 1 --timeout 15 filelock || gone 'no packages of Python can be fetched'
wanted "$@" > "$env/list"
install -r <(grep -v '[=>]' "$env/list") && install --no-deps -r <(grep '[=>]' "$env/list") || exit
if [ $# = 1 ]; then
	triton=$("$env/bin/python" -c 'from importlib.metadata import requires; print(*[r.split(";")[0] for r in requires("torch") if r.startswith("triton")])') &&
		install --no-deps ${triton:+"$triton"} || exit
fi
rm "$env/incomplete"
