#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The allocators of PyTorch's releases beside cufrag: torch_matrix.sh PROGRAM [--filter REGEX] RELEASE...
#	torch_matrix.sh build/release/cufrag 2.11.0 2.16.0
# Fetches each release's wheel with pip into $TORCH_MATRIX/RELEASE (build/torch-matrix; 1 to 2 GB each, once), records every
# workload of torch_matrix.py under every setting that the release has, on the pretended card (no GPU), into
# $TORCH_MATRIX/rec/RELEASE, and verifies each recording. A line per recording: release, name, what info takes it for,
# verdict. A release that cannot be fetched is skipped, with a word. By hand: it needs the network and minutes.
# Exit status 1 if a recording was not made or is not identical. Last line: N identical, N not, N skipped.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cufrag=$(realpath "${1:?usage: torch_matrix.sh PROGRAM [--filter REGEX] RELEASE...}")
shift
filter=.
[ "${1:-}" = --filter ] && { filter=${2:?--filter wants a pattern}; shift 2; }
[ $# -gt 0 ] || { echo 'torch_matrix: name a release, as 2.11.0' >&2; exit 2; }
home=$(realpath -m "${TORCH_MATRIX:-build/torch-matrix}")
mkdir -p "$home/rec"
export XDG_CACHE_HOME=$home/cache
same=0 other=0 skipped=0

# fetch RELEASE: its wheel without CUDA's, in an environment of its own
fetch() {
	local env=$home/$1 numpy=numpy
	[ -x "$env/bin/python" ] && return
	since "$1" 2.3 || numpy='numpy<2'
	rm -rf "$env.new"
	python3 -m venv "$env.new" && "$env.new/bin/pip" install -q --no-deps "torch==$1" &&
		"$env.new/bin/pip" install -q filelock typing-extensions sympy networkx jinja2 fsspec "$numpy" setuptools &&
		mv "$env.new" "$env"
}

# since RELEASE FIRST: is it that one or newer?
since() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# one RELEASE WORKLOAD NAME SETTINGS [OPTION OF RECORD...]
one() {
	local release=$1 work=$2 name=$2.$3 conf=$4 verdict taken limit=()
	local out=$home/rec/$release/$name.cft
	shift 4
	[[ $name =~ $filter ]] || return
	[ "${1:-}" = --limit ] && limit=("$1" "$2")
	mkdir -p "$home/rec/$release"
	rm -f "$out"
	PYTORCH_CUDA_ALLOC_CONF=$conf "$cufrag" record --no-gpu "$@" -o "$out" -- \
		"$home/$release/bin/python" "$here/torch_matrix.py" "$work" > "${out%.cft}.log" 2>&1
	if [ ! -s "$out" ]; then
		verdict="not recorded: $(tail -n 1 "${out%.cft}.log")"
	else
		verdict=$("$cufrag" verify "$out" "${limit[@]}" 2> "${out%.cft}.err" | grep -E 'verdict|first difference' | tr '\n' ' ')
		[ -n "$verdict" ] || verdict=$(tail -n 1 "${out%.cft}.err")
	fi
	taken=$("$cufrag" info "$out" 2> /dev/null | sed -n 's/^recorded by *//p')
	printf '%-8s %-20s %-22s %s\n' "$release" "$name" "${taken:--}" "$verdict"
	case $verdict in *'verdict: identical'*) same=$((same + 1)) ;; *) other=$((other + 1)) ;; esac
}

matrix() {
	local r=$1 exp=expandable_segments:True
	one "$r" mix default ''
	one "$r" mix expandable $exp
	one "$r" mix split128 max_split_size_mb:128
	one "$r" mix pow2 roundup_power2_divisions:4
	one "$r" mix pow2list 'roundup_power2_divisions:[64:8,256:4,1024:4,>:1]'
	one "$r" mix gc garbage_collection_threshold:0.6 --limit 12G
	one "$r" streams default ''
	one "$r" streams expandable $exp
	one "$r" oom default '' --limit 6G
	one "$r" oom split max_split_size_mb:64 --limit 6G
	one "$r" oom gc garbage_collection_threshold:0.7 --limit 6G
	one "$r" oom expgc $exp,garbage_collection_threshold:0.7 --limit 6G
	one "$r" graphs default ''
	one "$r" graphs expandable $exp
	since "$r" 2.6 && one "$r" mempool default ''
	since "$r" 2.6 && one "$r" mix nonsplit max_split_size_mb:64,max_non_split_rounding_mb:32
	since "$r" 2.9 && one "$r" mempool expandable $exp
	since "$r" 2.10 && one "$r" nosplit default ''
	since "$r" 2.10 && one "$r" nosplit expandable $exp
	since "$r" 2.11 && one "$r" mix largeseg large_segment_size_mb:64
	since "$r" 2.12 && one "$r" oom throw throw_on_cudamalloc_oom:True --limit 6G
	since "$r" 2.15 && one "$r" mix reserve $exp,expandable_segments_reserve:40G
	since "$r" 2.15 && one "$r" oom reserve $exp,expandable_segments_reserve:2G --limit 6G
	return 0
}

for release; do
	if ! fetch "$release"; then
		echo "$release: skipped, its wheel cannot be fetched"
		skipped=$((skipped + 1))
		continue
	fi
	matrix "$release"
done
echo "$same identical, $other not, $skipped skipped"
[ $other -eq 0 ]
