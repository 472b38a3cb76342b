#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cufrag record` and `monitor` say, beside what programs on a card say themselves; about two minutes:
#	record_proofs.sh PROGRAM OUT_FOLDER [PAIRS]
# Writes OUT_FOLDER/proofs.txt, one line per proof that ends with "same" or "DIFFERENT", and what each rests on.
# Wants nvcc, and python3 with PyTorch, JAX and CuPy; what is missing is skipped with a word. Exit 1: something differs.
set -uo pipefail
cufrag=$(realpath "${1:?usage: record_proofs.sh PROGRAM OUT_FOLDER [PAIRS]}")
out=${2:?usage: record_proofs.sh PROGRAM OUT_FOLDER [PAIRS]}
pairs=${3:-5000000}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
begin=$SECONDS
: > "$out/proofs.txt"
say() { printf '%4d s  %s\n' $((SECONDS - begin)) "$*" | tee -a "$out/proofs.txt"; }
same() { # WHAT A B
	if [ "$2" = "$3" ] && [ -n "$2" ]; then say "$1: $2, same"; else say "$1: '$2' and '$3', DIFFERENT"; fi
}

# of a recording: "A allocs B bytes F frees R refused", all devices; from a CSV of the recorder
count() {
	awk -F, '$1 == "alloc" { a++; b += $3 } $1 == "free" { f++ } $1 == "refused" { r++ }
		END { printf "%d allocs %.0f bytes %d frees %d refused\n", a, b, f, r }' "$@"
}
events() { awk -F, '/^(alloc|free|refused)/ { print $1, $3, $4 != "" ? ($4 != "0x0") : "-", $6 }' "$@"; }
# of a .cft: how many requests, and their sizes in order
sizes() { "$cufrag" export --to csv "$1" 2> /dev/null |
	python3 -c '
import csv, hashlib, sys
sizes = [r["bytes"] for r in csv.DictReader(sys.stdin) if r["action"] == "alloc"]
print(len(sizes), "requests,", sum(map(int, sizes)), "bytes,", hashlib.md5(" ".join(sizes).encode()).hexdigest())'; }

# ---- every call, by both ways, against the program's own count ------------------------
if command -v nvcc > /dev/null && nvcc -O1 -cudart static -o proofs "$here/record_proofs.cu" 2> "$out/nvcc.log"; then
	own=$(./proofs every)
	for by in cupti preload; do
		"$cufrag" record --by $by -o $by.cft -- ./proofs every > $by.txt 2> $by.err
		same "static runtime, VMM, pools, by $by: own count through cufrag record" "$own" "$(grep allocs $by.txt)"
		say "  cufrag: $(tail -n 1 $by.txt) $(cat $by.err)"
	done
	library=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/cufrag" -name libcufrag_record.so -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f 2)
	CUDA_INJECTION64_PATH=$library CUFRAG_RECORD_BY=cupti CUFRAG_RECORD_CUDA=c ./proofs every > /dev/null
	LD_PRELOAD=$library CUFRAG_RECORD_BY=preload CUFRAG_RECORD_CUDA=p ./proofs every > /dev/null
	cp c.*.csv "$out/every.cupti.csv"
	cp p.*.csv "$out/every.preload.csv"
	same 'recorded by cupti' "$own" "$(count c.*.csv)"
	same 'recorded by preload' "$own" "$(count p.*.csv)"
	events c.*.csv > c.events
	events p.*.csv > p.events
	[ -s c.events ] && same 'cupti against preload: the same events' "$(wc -l < c.events) events, $(md5sum < c.events)" \
		"$(wc -l < p.events) events, $(md5sum < p.events)"
	diff c.events p.events | head -n 20 > "$out/every.diff"

	# ---- nothing lost, and what a call takes -------------------------------------------
	say "ns per call without the recorder: $(./proofs pairs 1000000)"
	say "ns per call by preload: $(LD_PRELOAD=$library CUFRAG_RECORD_BY=preload CUFRAG_RECORD_CUDA=q ./proofs pairs 1000000)"
	say "ns per call by cupti, with stacks: $(CUFRAG_RECORD_STACKS=1 CUDA_INJECTION64_PATH=$library CUFRAG_RECORD_CUDA=s ./proofs pairs 200000)"
	rm -f q.*.csv s.*.csv
	"$cufrag" record --by cupti -o many.cft -- ./proofs pairs "$pairs" > many.txt 2> many.err
	say "ns per call by cupti: $(head -n 1 many.txt)"
	same 'nothing lost' "$((2 * (pairs + 1000))) events" "$(grep -oE '[0-9]+ events' many.txt)"
	rm -f many.cft
else
	say 'no nvcc: skipped'
fi

# ---- JAX: its own pool against a replay of its requests ---------------------------------
cat > jaxrun.py << 'PY'
import json, sys
import jax, jax.numpy as jnp
key = jax.random.PRNGKey(0)
sizes = [1024, 4096, 4096, 1000]
params = [jax.random.normal(jax.random.fold_in(key, i), (a, b)) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]
def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w)
    return (x * x).mean()
step = jax.jit(lambda p, x: [w - 0.1 * g for w, g in zip(p, jax.grad(loss)(p, x))])
for i in range(10):
    params = step(params, jax.random.normal(jax.random.fold_in(key, 100 + i), (512 + 64 * (i % 3), 1024)))
jax.block_until_ready(params)
json.dump(jax.devices()[0].memory_stats() or {}, open(sys.argv[1], "w"))
PY
if python3 -c 'import jax' 2> /dev/null; then
	export XLA_PYTHON_CLIENT_PREALLOCATE=false
	TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_MAX_LOG_LEVEL=0 TF_CPP_VMODULE=bfc_allocator=4 python3 jaxrun.py own.json 2> xla.log
	cp own.json "$out/jax.json"
	sed -nE 's/.*\[mem-debug\] AllocateRaw,GPU_[0-9]+_bfc,([0-9]+),(0x[0-9a-f]+),.*/alloc,\2,\1/p
		s/.*\[mem-debug\] DeallocateRaw,GPU_[0-9]+_bfc,[0-9]+,(0x[0-9a-f]+),.*/free,\1,/p' xla.log > xla.csv
	grep -hoE 'Extending allocation by .*' xla.log | head -n 40 > "$out/jax.regions.txt"
	head -c 4000 xla.log > "$out/jax.log.head.txt"
	pool=$(python3 -c 'import json; print(json.load(open("own.json")).get("peak_pool_bytes"))')
	replayed() { "$cufrag" replay "$1" --policy bfc --json - --no-host 2> /dev/null |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["results"][0]["peak_reserved_bytes"])'; }
	say "JAX's own pool: $(cat own.json)"
	if [ -s xla.csv ]; then
		cp xla.csv "$out/jax.xla.csv"
		same "JAX's requests by its own log, under bfc: peak_pool_bytes" "$pool" "$(replayed xla.csv)"
	else
		say "XLA's log has no requests (TF_CPP_VMODULE): skipped"
	fi
	for by in cupti preload; do
		"$cufrag" record --by $by --no-pool -o jax.$by.cft -- python3 jaxrun.py x.json > jax.$by.txt 2>&1
		say "JAX by $by: $(tail -n 1 jax.$by.txt)"
		say "  $(grep 'left out' jax.$by.txt)"
		same "JAX's requests by $by (cuda_async), under bfc: peak_pool_bytes" "$pool" "$(replayed jax.$by.cft)"
		cp jax.$by.cft "$out/"
	done
else
	say 'no JAX: skipped'
fi

# ---- the same PyTorch run by its own recorder and by the driver; CuPy's own count --------
cat > small.py << 'PY'
import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda()
adam = torch.optim.AdamW(model.parameters())
for i in range(12):
    x = torch.randn(64 + 16 * (i % 3), 512, device="cuda")
    y = torch.randint(0, 10, (len(x),), device="cuda")
    adam.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    adam.step()
PY
cat > arrays.py << 'PY'
import cupy
cupy.cuda.set_allocator(None)
sizes = [(i + 1) * 1000 + i % 7 for i in range(200)]
keep = []
for i, n in enumerate(sizes):
    keep.append(cupy.empty(n, dtype=cupy.uint8))
    if i % 3 == 0:
        keep.pop(0)
print(len(sizes), "requests,", sum(sizes), "bytes")
PY
if python3 -c 'import torch' 2> /dev/null; then
	"$cufrag" record --torch -o pt.cft -- python3 small.py > pt.txt 2>&1
	"$cufrag" record --torch -o ranks.cft -- python3 -m torch.distributed.run --nproc-per-node 1 small.py > ranks.txt 2>&1
	same 'PyTorch by its own recorder, started by torchrun: requests' "$(sizes ranks.cft)" "$(sizes pt.cft)"
	"$cufrag" record --no-pool --stacks -o raw.cft -- python3 small.py > raw.txt 2>&1
	say "  $(grep 'left out' raw.txt)"
	same 'PyTorch by its own recorder and by the driver: requests' "$(sizes pt.cft)" "$(sizes raw.cft)"
	say "  lines of Python: $("$cufrag" explain raw.cft 2> /dev/null | grep -oE 'small.py:[0-9]+' | sort -u | tr '\n' ' ')"
fi
if python3 -c 'import cupy' 2> /dev/null; then
	own=$("$cufrag" record --stacks -o cupy.cft -- python3 arrays.py 2> cupy.err | head -n 1)
	same "CuPy's own count and what was recorded" "$own" "$(sizes cupy.cft | cut -d, -f 1,2)"
fi

# ---- monitor beside a training, against nvidia-smi ---------------------------------------
if python3 -c 'import torch' 2> /dev/null && command -v nvidia-smi > /dev/null; then
	cat > hold.py << 'PY'
import time, torch
keep = [torch.ones(64 << 20, device="cuda") for _ in range(20)]
torch.cuda.synchronize()
print("ready", flush=True)
time.sleep(12)
PY
	python3 hold.py > ready.txt & pid=$!
	while ! grep -q ready ready.txt && kill -0 $pid 2> /dev/null; do sleep 0.2; done
	nvidia-smi --query-gpu=memory.used,memory.free,memory.total --format=csv,noheader,nounits > smi.txt
	nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits > apps.txt
	"$cufrag" monitor --count 1 --json > monitor.json
	kill $pid; wait $pid 2> /dev/null
	cp monitor.json smi.txt apps.txt "$out/"
	ours=$(python3 -c '
import json
for c in json.load(open("monitor.json"))["cards"]:
    print(", ".join(str(-(-c[k] // 2**20)) for k in ("used_bytes", "free_bytes", "total_bytes")))')
	same 'monitor against nvidia-smi: MiB used, free, total' "$(cat smi.txt)" "$ours"
	say "  processes: nvidia-smi $(tr '\n' ';' < apps.txt) monitor $(grep -oE '"pid": ?[0-9]+[^}]*' monitor.json | tr '\n' ';')"
else
	say 'no PyTorch or nvidia-smi: skipped'
fi
! grep -q DIFFERENT "$out/proofs.txt"
