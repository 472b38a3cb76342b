#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds policies against the allocators they follow, compiled from their own sources, on the bundled traces:
#	run.sh FOLDER [umpire|rmm|cub|ort|bfc|ggml|paddle|tlsf]...
# FOLDER keeps the sources (fetched where they are missing; they never come into this repository) and what is built of them.
# Needs `make lab`, git, g++ with C++20, the headers of the CUDA toolkit (CUDA_HOME), python3 and pip; no card. A row for each replay
# on standard output, see check.py; exit status 1 where one differs. TRACES: files. VERSIONS of what was checked last, and
# the result, are in README.md here.
set -euo pipefail
cd "$(dirname "$0")/../../.."
[ $# -ge 1 ] || { sed -n '3,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
here=scripts/lab/upstream
cuda=${CUDA_HOME:-/usr/local/cuda}
read -r -a traces <<< "${TRACES:-$(echo traces/*.cft)}"
failed=0

clone() { [ -d "$folder/$2" ] || git clone -q --depth 1 "https://github.com/$1/$2" "$folder/$2"; }
version() { git -C "$folder/$1" log -1 --format="# $1 %h of %cs"; }

# objects OUT STANDARD INCLUDES -- SOURCES
build() {
	local out=$1 standard=$2 f objects=() includes=()
	shift 2
	while [ "$1" != -- ]; do includes+=("-I$1"); shift; done
	shift
	[ ! -x "$folder/$out" ] || [ "$here/$out.cpp" -nt "$folder/$out" ] || return 0
	mkdir -p "$folder/objects.$out"
	for f in "$@"; do
		objects+=("$folder/objects.$out/$(basename "$f" .cpp).o")
		g++ -w -O1 "-std=$standard" -I$here/stub "${includes[@]}" -c -o "${objects[-1]}" "$f"
	done
	g++ -o "$folder/$out" "${objects[@]}"
}

# check POLICY DRIVER [ARGUMENT...] on all traces; those of several devices are left out, whose logs would mix
check() {
	local t
	for t in "${traces[@]}"; do
		case $t in *modelpar* | *oomcap*) continue ;; esac
		$here/check.py "$1" "$t" "${@:2}" || failed=1
	done
}

umpire() {
	local src=$folder/Umpire/src s=$folder/Umpire/src/umpire/strategy
	clone LLNL Umpire
	version Umpire
	build drive_umpire c++17 "$src" -- $here/drive_umpire.cpp "$s"/{QuickPool,DynamicPoolList,FixedPool,MixedPool,AllocationStrategy}.cpp \
		"$s/mixins/AlignedAllocation.cpp" "$src/umpire/util/FixedMallocPool.cpp"
	check quickpool "$folder/drive_umpire" quick
	check dynamicpool "$folder/drive_umpire" dynamic
	check umpire-mixed "$folder/drive_umpire" mixed
	check umpire-fixed:object=1G,objects-per-pool=2 "$folder/drive_umpire" fixed 1073741824 2
}

cccl_includes() { echo "$folder/cccl/libcudacxx/include $folder/cccl/cub $folder/cccl/thrust $cuda/include"; }

rmm() {
	local src=$folder/rmm/cpp/src
	clone rapidsai rmm
	clone NVIDIA cccl
	version rmm
	# shellcheck disable=SC2046 # words
	build drive_rmm c++20 "$folder/rmm/cpp/include" $(cccl_includes) -- $here/drive_rmm.cpp \
		"$src"/mr/{pool,fixed_size,binning,arena}_memory_resource.cpp "$src"/mr/detail/{pool,fixed_size,binning,arena}_memory_resource_impl.cpp \
		"$src"/{aligned,cuda_device,cuda_stream_view,error,runtime_shutdown}.cpp
	check rmm-pool "$folder/drive_rmm" pool
	check rmm-pool:initial=1G "$folder/drive_rmm" pool 1073741824
	check rmm-binning "$folder/drive_rmm" binning
	check rmm-arena:size=64G "$folder/drive_rmm" arena 68719476736
	check rmm-fixed:block=1G,blocks-per-chunk=2 "$folder/drive_rmm" fixed 1073741824 2
}

cub() {
	clone NVIDIA cccl
	version cccl
	# shellcheck disable=SC2046
	build drive_cub c++17 $(cccl_includes) -- $here/drive_cub.cpp
	check cub:lag-us=0 "$folder/drive_cub"
}

ort() {
	local lib
	[ -d "$folder/onnxruntime" ] || pip install -q --no-deps --target "$folder/onnxruntime" onnxruntime
	lib=$(echo "$folder"/onnxruntime/onnxruntime/capi/libonnxruntime.so.*)
	echo "# onnxruntime ${lib##*.so.}"
	gcc -w -O1 -rdynamic -o "$folder/drive_ort" $here/drive_ort.c -ldl
	check bfc:variant=ort "$folder/drive_ort" "$lib" 0
	check bfc:variant=ort,extend=exact "$folder/drive_ort" "$lib" 1
}

# the wheel has XLA's BFCAllocator in a library, and its headers; the limit is 0.75 of the simulated card, or 0.05
bfc() {
	local tf
	[ -d "$folder/tensorflow" ] || pip install -q --no-deps --target "$folder/tensorflow" tensorflow-cpu
	tf=$folder/tensorflow/tensorflow
	echo "# tensorflow_cpu $(basename "$folder"/tensorflow/tensorflow_cpu-*.dist-info .dist-info | sed 's/.*-//')"
	[ -x "$folder/drive_bfc" ] || g++ -w -O1 -std=c++17 -I$here "-I$tf/include" -o "$folder/drive_bfc" $here/drive_bfc.cpp \
		"-L$tf" -l:libtensorflow_framework.so.2 "-Wl,-rpath,$tf"
	check bfc "$folder/drive_bfc" 112582410240
	check bfc:growth=false "$folder/drive_bfc" 112582410240 0
	check bfc:fraction=0.05 "$folder/drive_bfc" 7505494016
	check bfc:fraction=0.05,gc=true "$folder/drive_bfc" 7505494016 1 1
}

ggml() {
	clone ggml-org ggml
	version ggml
	sed -n '/^struct ggml_cuda_pool_leg /,/^};/p' "$folder/ggml/src/ggml-cuda/ggml-cuda.cu" > "$folder/ggml_pool.inc"
	g++ -w -O1 -std=c++17 -I$here "-DPOOL=\"$folder/ggml_pool.inc\"" -o "$folder/drive_ggml" $here/drive_ggml.cpp
	check ggml "$folder/drive_ggml"
}

# two files of a large repository; what they include is in stub/
paddle() {
	local at=paddle/phi/core/memory/allocation/auto_growth_best_fit_allocator
	if [ ! -d "$folder/Paddle" ]; then
		git clone -q --depth 1 --filter=blob:none --no-checkout https://github.com/PaddlePaddle/Paddle "$folder/Paddle"
		git -C "$folder/Paddle" checkout -q HEAD -- $at.cc $at.h
	fi
	version Paddle
	mkdir -p "$folder/paddle_src"
	cp "$folder/Paddle/$at.cc" "$folder/paddle_src/auto_growth_best_fit_allocator.cpp"
	build drive_paddle c++17 "$here" "$folder/Paddle" -- $here/drive_paddle.cpp "$folder/paddle_src/auto_growth_best_fit_allocator.cpp"
	check paddle "$folder/drive_paddle"
	check paddle:chunk-size=64M "$folder/drive_paddle" 67108864
	check paddle:free-idle-chunk=true "$folder/drive_paddle" 0 1
	check paddle:free-when-no-cache-hit=true "$folder/drive_paddle" 0 0 1
}

# its unit is cufrag's, its largest block above the card, and headers take no room (drive_tlsf.c)
tlsf() {
	clone mattconte tlsf
	version tlsf
	sed 's/ALIGN_SIZE_LOG2 = 3,/ALIGN_SIZE_LOG2 = 9,/; s/FL_INDEX_MAX = 32,/FL_INDEX_MAX = 40,/
		s/block_header_overhead = sizeof(size_t)/block_header_overhead = 0/
		/block_start_offset =/,/;/c static const size_t block_start_offset = 0;' "$folder/tlsf/tlsf.c" > "$folder/tlsf_512.c"
	gcc -w -O1 -I$here "-I$folder/tlsf" "-DTLSF=\"$folder/tlsf_512.c\"" -o "$folder/drive_tlsf" $here/drive_tlsf.c
	check tlsf "$folder/drive_tlsf"
	check tlsf:pool=2M "$folder/drive_tlsf" 2097152
	check tlsf:pool=1G "$folder/drive_tlsf" 1073741824
}

[ $# -gt 0 ] || set -- umpire rmm cub ort bfc ggml paddle tlsf
echo "policy,trace,requests,same_addresses,peak_bytes,upstream_peak_bytes,first_difference"
for what; do
	case $what in umpire | rmm | cub | ort | bfc | ggml | paddle | tlsf) $what ;; *) echo "run.sh: unknown '$what'" >&2; exit 2 ;; esac
done
exit $failed
