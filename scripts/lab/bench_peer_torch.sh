#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares policies with PyTorch's own allocator on the operations of the same traces, in the
# same run, where PyTorch with CUDA is installed:
#	bench_peer_torch.sh CUFRAG OUT.csv TRACE...
# PASSES (5) warm passes each; POLICIES ('pytorch'). Builds bench_peer_torch.cpp against the PyTorch
# of `python3` in a temporary folder. Exit status 77: no PyTorch, or no card.
set -euo pipefail
here=$(dirname "$0")
[ $# -ge 3 ] || { echo "usage: $0 CUFRAG OUT.csv TRACE..." >&2; exit 2; }
cufrag=$1 out=$2
shift 2
passes=${PASSES:-5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

torch=$(python3 - 2> /dev/null << 'EOF'
import os, torch
assert torch.cuda.is_available()
print(torch.__version__.split("+")[0], os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI))
EOF
) || { echo "bench_peer_torch: no PyTorch with a card" >&2; exit 77; }
read -r version folder abi <<< "$torch"

cuda=${CUDA_HOME:-/usr/local/cuda}
cudart=$(ls "$cuda"/lib64/libcudart.so "$folder"/../nvidia/*/lib/libcudart.so.* 2> /dev/null | head -n 1)
g++ -std=c++17 -O3 -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI="$abi" -isystem "$folder/include" -isystem "$cuda/include" \
	-o "$tmp/peer" "$here/bench_peer_torch.cpp" \
	-L"$folder/lib" -Wl,-rpath,"$folder/lib" -Wl,--no-as-needed -lc10_cuda -lc10 "$cudart" \
	-Wl,-rpath,"$(dirname "$cudart")" -Wl,--allow-shlib-undefined

rows=$tmp/rows.csv
for trace in "$@"; do
	name=$(basename "$trace")
	name=${name%.cft}
	"$cufrag" bench --device cuda --passes "$passes" --policies "${POLICIES:-pytorch}" \
		--ops "$tmp/ops" --csv "$tmp/one.csv" "$trace" > /dev/null
	[ -s "$rows" ] || head -n 1 "$tmp/one.csv" > "$rows"
	tail -n +2 "$tmp/one.csv" >> "$rows"
	# the columns of cufrag bench; PyTorch's driver calls are not counted
	"$tmp/peer" "$tmp/ops" "$name" "PyTorch $version" "$passes" >> "$rows"
done
mv "$rows" "$out"
echo "bench_peer_torch: $out"
