#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Small trainings with the real PyTorch on the pretended card: run.sh [--fetch] PROGRAM [BEGINNING_OF_CASES]
# The wheel lies in a folder of its own, $TORCH_ENV (build/torch-env), where --fetch puts it (1 to 2 GB); without
# that folder everything is skipped. Nothing is installed anywhere else.
# Last line: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
env=${TORCH_ENV:-$PWD/build/torch-env}
if [ "${1:-}" = --fetch ]; then
	shift
	tests/torch/fetch.sh "$env" || { echo "cannot fetch PyTorch"; exit 1; }
fi
cufrag=$(realpath "${1:?usage: run.sh [--fetch] PROGRAM}")
if [ ! -x "$env/bin/python" ]; then
	echo "skipped torch: no PyTorch in $env (make test-torch fetches it)"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
root=$PWD
. tests/support/cases.sh
export CUFRAG=$cufrag
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$root/build/torch-cache}
mkdir -p "$XDG_CACHE_HOME"
python=$env/bin/python

# Shows these files and ends the test.
wrong() { cat "$@"; exit 1; }
record() { "$cufrag" record --no-gpu "$@" > log 2>&1 || { cat log; return 1; }; }
# has "PYTHON" WHY: the test is skipped where that does not run; beside the pretended card, since PyTorch does not load without CUDA's libraries
has() { record -o has.cft -- "$python" -c "import torch; torch.ones(1, device='cuda'); $1" > err || skip "$2"; }
release() { "$python" -c "from importlib.metadata import version; print(version('$1').split('+')[0])"; }
has_package() { "$python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$1'))" || skip "no ${2:-$1} in this environment"; }
verified() { "$cufrag" verify "$1" 2> err | tail -1 | grep -qx 'verdict: identical' || { "$cufrag" verify "$1"; return 1; }; }

test_training_is_recorded_and_replays_identically() {
	record --gpu l4 -o run.cft -- "$python" "$root/tests/torch/train.py" plain || return
	grep -q 'NVIDIA L4 8.9 58' log && verified run.cft &&
		"$cufrag" info run.cft | grep -q 'invented .* at .*train.py:' &&
		"$cufrag" fit run.cft --policy pytorch 2> err > /dev/null && grep -q 'is an estimate' err
}

# A card of each capability: PyTorch has no code for some, and the card runs that of another.
test_every_capability_runs_a_training() {
	local gpu capability
	"$cufrag" list gpus --csv - | awk -F, 'NR > 1 && $6 { print $6, $1 }' | sort -u -k 1,1 > cards
	[ "$(wc -l < cards)" -ge 9 ] || wrong cards
	while read -r capability gpu; do
		record --gpu "$gpu" -o run.cft -- "$python" "$root/tests/torch/train.py" kernels && grep -qx "ran on $capability" log &&
			! grep -q 'missing from the pretended card' log || { echo "$gpu"; wrong log; }
	done < cards
}

# LBFGS stops where the loss no longer falls: invented losses do fall, with and without a line search.
test_lbfgs_runs_all_its_iterations() {
	cat > lbfgs.py <<'E'
import torch

for search in None, "strong_wolfe":
    net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.Tanh(), torch.nn.Linear(4096, 4096)).cuda()
    x = torch.randn(256, 4096, device="cuda")
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=8, history_size=4, line_search_fn=search)
    calls = 0

    def closure():
        global calls
        calls += 1
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss
    optimizer.step(closure)
    state = optimizer.state[optimizer._params[0]]
    print("lbfgs", calls, state["n_iter"], len(state["old_dirs"]))
E
	record -o run.cft -- "$python" lbfgs.py && grep -qx 'lbfgs 8 8 4' log && grep -qx 'lbfgs 9 8 4' log && verified run.cft || wrong log
}

# A kernel that NVRTC compiled here is empty: were it kept where PyTorch looks for kernels, a program on a real card would fail.
test_caches_of_real_cards_stay_as_they_are() {
	mkdir -p home real
	HOME=$PWD/home PYTORCH_KERNEL_CACHE_PATH=$PWD/real CUPY_CACHE_DIR=$PWD/real record -o run.cft -- "$python" -c '
import torch
assert torch.arange(1, 5, device="cuda").prod().item() == 24
torch.randn(8, device="cuda", dtype=torch.cfloat).abs()' || return
	[ -z "$(find home real -type f)" ] || { find home real -type f; return 1; }
}

# what waits on the host takes as little memory there as what the card has: 8 GiB of tensors that nobody computed
test_tensors_on_the_host_take_no_memory() {
	cat > offload.py <<-'PY'
		import resource, torch
		x = torch.empty(1 << 29, device="cuda", requires_grad=True)
		with torch.autograd.graph.save_on_cpu(pin_memory=True):
		    y = x.sin().sin().sin().sin()
		y.sum().backward()
		x.grad[:1 << 20].cpu()
		print("largest", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
	PY
	record --gpu h100 -o run.cft -- "$python" offload.py || return
	[ "$(awk '/^largest/ { print $2 }' log)" -lt 3000 ] || wrong log
}

# vLLM, where this environment has it: its server as one starts it, asked to end when it listens
test_layout_serves_with_vllm() {
	has_package vllm vLLM
	mkdir model && "$python" "$root/tests/torch/small_model.py" model || return
	HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_USE_DEEP_GEMM=0 PATH=$env/bin:$PATH "$cufrag" layout --serve --gpu l4 --vary tp=1 --requests 64 \
		--tokens 1024 --json serve.json -- vllm serve model --load-format dummy --enforce-eager --max-model-len 1024 --port 0 > out 2> log || wrong log out
	"$python" - <<- 'END'
		import json
		row = json.load(open("serve.json"))["layouts"][0]
		# two layers of 2 heads of 64, keys and values in bf16: 1,024 bytes a token
		assert row["cache_bytes"] // 1024 - 32 <= row["cache_tokens_count"] <= row["cache_bytes"] // 1024 + 1024 * 16, row
		assert row["weight_bytes"] and row["profile_bytes"], row
	END
}

# the ranks of torchrun are started one for each role, and the border of the batch is found by bisection; the margin has room for what
# NCCL takes on the card itself, which replays do not count: since PyTorch 2.15, a mesh makes its groups at once, also one of one rank
test_layouts_of_a_job() {
	has 'import torch.distributed.device_mesh; from torch.distributed.fsdp import fully_shard' 'no fully_shard in this PyTorch'
	printf 'name,memory,price_per_hour\nl4,1300M,0.7\n' > cards.csv
	"$cufrag" layout --no-gpu --cards cards.csv --gpu l4 --margin 520M --world 1,2 --vary '{batch}=1..16' --jobs 1 --check 0 --json layout.json -- \
		"$env/bin/torchrun" --nproc-per-node {world} "$root/tests/torch/layouts.py" --batch '{batch}' > out 2> log || wrong log out
	"$python" - << 'END' || wrong log out
import json
a = json.load(open("layout.json"))
ran = [r for r in a["layouts"] if r["basis"] != "assumed"]
assert a["fewest"][0]["gpus_count"] == 1 and a["fewest"][0]["confirmed"], a["fewest"]
assert len(ran) < 14 and {"fits"} < {r["answer"] for r in ran} <= {"fits", "tight", "does not fit"}, ran
assert all(r["permanent_bytes"] and r["optimizer_bytes"] and r["rank"] == 0 and r["step_us"] for r in ran), ran
assert all(abs(r["price_per_step"] / (0.7 * r["gpus_count"] * r["step_us"] / 3.6e9) - 1) < 1e-3 for r in ran), ran
assert {"activations"} <= {r["bound_by"] for r in ran} <= {"activations", "fragmentation"}, ran
assert all(r["activation_bytes"] > r["gradient_bytes"] for r in ran if r["bound_by"] == "activations"), ran
assert a["failed_count"] == 0 and a["wrong_count"] == 0
border = [max(int(r["layout"].split("batch=")[1]) for r in a["layouts"] if r["answer"] == "fits" and r["gpus_count"] == n) for n in (1, 2)]
assert border[0] <= border[1], border
END
}

# layouts forked from one Python are as those started anew, whatever the program does to its process, and leave nothing behind
test_forked_layouts_are_as_anew() {
	local way
	mkdir anew forked
	for way in anew forked; do
		(cd $way && "$cufrag" layout --no-gpu --gpu h100 --policies pytorch --check 0 --fresh --jobs 2 --csv - $([ $way = forked ] || echo --exact) \
			--vary '{kind}=plain,folder,child,thread,closed,exits,group,parent' -- "$python" "$root/tests/torch/layout_kinds.py" '{kind}' 2> log | sed 's/,card,/,recorded,/' > rows.csv)
	done
	cmp anew/rows.csv forked/rows.csv && grep -q 'three is no number' anew/rows.csv && ! grep -q 'started anew' forked/log || { diff anew/rows.csv forked/rows.csv; tail -5 anew/log forked/log; return 1; }
	[ "$(wc -l < forked/numbers)" -ge 8 ] && [ -z "$(cut -d' ' -f1 forked/numbers | sort | uniq -d)$(cut -d' ' -f2 forked/numbers | sort | uniq -d)" ] || wrong forked/numbers
	! pgrep -f "$root/tests/torch/layout_kinds.py|cufrag_forks.py $PWD"
}

# DTensor's answers about an optimizer's operators are those of the first layout in all that are forked, which are as those started anew
test_forked_layouts_know_the_shapes() {
	has 'from torch.distributed.fsdp import fully_shard; from torch.distributed.tensor import _sharding_prop' 'no fully_shard in this PyTorch'
	for way in anew forked; do
		"$cufrag" layout --no-gpu --gpu h100 --world 4 --policies pytorch --check 0 --fresh --jobs 1 --csv $way.csv $([ $way = forked ] || echo --exact) \
			--vary "{n}=$([ $way = forked ] && echo 1,2,3,4,5,)6" -- "$python" "$root/tests/torch/layout_shapes.py" '{n}' counts > out 2> $way.log || wrong out $way.log
		mv counts $way.counts
	done
	sed -i 's/,card,/,recorded,/' anew.csv forked.csv; grep n=6 anew.csv > anew && grep n=6 forked.csv | cmp - anew && ! grep -q 'started anew' forked.log || { diff forked.csv anew.csv; cat forked.log; return 1; }
	! grep -qx 0 anew.counts && [ "$(grep -vcx 0 forked.counts)" -le 2 ] && [ "$(grep -cx 0 forked.counts)" -ge 5 ] || wrong anew.counts forked.counts
}

# a weight of one block asks what that of another asked: DTensor computes it once
test_dtensor_computes_once_for_blocks_that_are_alike() {
	has 'from torch.distributed.device_mesh import DeviceMesh as m; m._concatenate; from torch.distributed.tensor.placement_types import _StridedShard as s
s.local_shard_size_and_offset; from torch.distributed.tensor._ops._pointwise_ops import common_pointwise_strategy' 'DTensor of this PyTorch computes in another way'
	for blocks in 2 4; do
		record --gpu h100 --ranks 0 --world 4 -o $blocks.cft -- "$python" "$root/tests/torch/layout_alike.py" $blocks counts || return
	done
	[ "$(wc -l < counts)$(uniq counts | wc -l)" = 21 ] || wrong counts
}

# forked layouts import nothing again, also what the program imports after it asked for a card, unless that asks for one, too
test_forked_layouts_import_once() {
	mkdir -p site-packages
	echo 'open("imports", "a").write(__name__ + "\n")' | tee site-packages/early.py > site-packages/late.py
	(cat site-packages/late.py && echo 'import torch; torch.zeros(1, device="cuda")') > site-packages/asks.py
	cat > run.py <<- 'END'
		import importlib, os, sys, torch, early
		layer = torch.nn.Linear(int(sys.argv[2]) << 8, 1 << 10).cuda()
		if sys.argv[1] == "job":
		    torch.distributed.init_process_group("nccl")
		importlib.import_module("late" if sys.argv[1] == "job" else sys.argv[1])
		optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
		layer(torch.randn(8, int(sys.argv[2]) << 8, device="cuda")).sum().backward()
		optimizer.step()
	END
	for run in late asks job 'job --jobs 2'; do
		read -r kind jobs <<< "$run"
		PYTHONPATH=$PWD/site-packages "$cufrag" layout --no-gpu --gpu h100,h200 --policies pytorch --check 0 --fresh ${jobs:---jobs 1} --vary '{n}=1,2,3,4,5,6' \
			$([ $kind != job ] || echo --world 2) -- "$python" run.py $kind '{n}' > out 2> log || wrong out log
		sort imports | uniq -c | awk '{ print $2, $1 }' >> counts && rm imports
	done
	# by the first layout (a job's: scout, rank and check; others wait for its scout) and the process that is forked; asks, too, by the trial, five layouts
	# and one on each card itself
	printf '%s\n' 'early 2' 'late 2' 'asks 10' 'early 2' 'early 4' 'late 4' 'early 4' 'late 4' | cmp - counts || wrong counts log
}

# in forks, Python looks for cycles only in what the program made, and as it ends takes apart only that; files of both have all that was written
test_forked_layouts_leave_out_what_was_loaded() {
	mkdir site-packages
	cat > site-packages/early.py <<- 'END'
		class Taken:
		    def __del__(self, to=open("apart", "a")):
		        to.write("apart\n")
		taken, log = Taken(), open("loaded", "a")
	END
	cat > run.py <<- 'END'
		import early, gc, os, sys, torch
		class Last:
		    def __del__(self, count=gc.get_freeze_count, write=os.write, to=os.open("ends", os.O_WRONLY | os.O_APPEND | os.O_CREAT)):
		        write(to, b"%d\n" % (count() > 100000))
		torch.zeros(1 << 20, device="cuda")
		last = [Last(), open("text" + sys.argv[1], "w")]
		last.append(last)
		last[1].write("written\n")
		early.log.write("written\n")
	END
	PYTHONPATH=$PWD/site-packages "$cufrag" layout --no-gpu --gpu h100 --policies pytorch --check 0 --fresh --jobs 1 --vary '{n}=1,2,3,4,5,6' -- "$python" run.py '{n}' > out 2> log || wrong out log
	sort ends | uniq -c | awk '{ print $2, $1 }' > counts
	printf '%s\n' '0 1' '1 7' | cmp - counts && [ "$(cat text? | grep -cx written)$(grep -cx written loaded)$(grep -cx apart apart)" = 681 ] || wrong counts log apart loaded
}

# what was forked before that was known to count is recorded anew, if forks do something else
test_forked_layouts_count_after_the_trial() {
	mkdir site-packages
	echo 'import os; loaded_by = os.getpid()' > site-packages/early.py
	cat > run.py <<- 'END'
		import early, os, sys, torch
		torch.distributed.init_process_group("nccl")
		layer = torch.nn.Linear(1024, int(sys.argv[1]) * (1 if early.loaded_by == os.getpid() else 2) << 10).cuda()
		torch.optim.SGD(layer.parameters(), lr=0.1).step()
	END
	PYTHONPATH=$PWD/site-packages "$cufrag" layout --no-gpu --gpu h100 --world 2 --policies pytorch --check 0 --fresh --jobs 2 --csv rows.csv --vary '{mb}=5,6,7,8,9' \
		-- "$python" run.py '{mb}' > out 2> log || wrong out log
	# as many MiB as it was given: a weight of 4 MiB for each
	grep -q 'started anew' log && awk -F, '$5 == "recorded" || $5 == "card" { split($3, name, "mb="); n += int($6 / 4194304) == name[2]; all++ } END { exit !(all > 1 && n == all) }' rows.csv || wrong log rows.csv
}

# the roles of a layout's ranks are taken from another only where its groups are the same, or where all ranks are alike with any number of
# them: else it finds its own, forked or not
test_layouts_with_other_groups_have_their_own_roles() {
	for way in forked anew; do
		"$cufrag" layout --no-gpu --gpu h100 --world 4,8 --policies pytorch --check 0 --fresh --jobs 1 --csv $way.csv $([ $way = forked ] || echo --exact) \
			--vary '{ac}=alike1,alike2,stages1,stages2,alike3,stages3' -- "$python" "$root/tests/torch/layout_groups.py" '{ac}' > out 2> $way.log || wrong out $way.log
		mv starts $way.starts
	done
	[ "$(grep -c '4 alike2' forked.starts)" = 1 ] && [ "$(grep -c '4 alike2' anew.starts)" = 3 ] || wrong forked.starts anew.starts # without scouts and checks
	sed -i 's/,card,/,recorded,/' anew.csv forked.csv
	cmp forked.csv anew.csv && ! grep -q 'started anew' forked.log || { diff forked.csv anew.csv; cat forked.log; return 1; }
	"$python" - <<- 'END'
		import csv
		rows = {tuple(r["layout"].split()): r["rank"] for r in csv.DictReader(open("forked.csv"))}
		assert rows == {("world=" + w, "ac=" + k + n): str(int(k == "stages")) for w in "48" for k in ("alike", "stages") for n in "123"}, rows
	END
}

# ranks that make no group are on their own: one stands for all, and with --memory each has its turn; one that fails says so
test_ranks_without_a_group() {
	cat > run.py <<- 'END'
		import os, sys, torch
		layer = torch.nn.Linear(1 << 10, 1 << int(sys.argv[1])).cuda()
		optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
		for _ in range(2):
		    layer(torch.ones(8, 1 << 10, device="cuda")).sum().backward()
		    optimizer.step()
		if os.environ["RANK"] == "3" and len(sys.argv) > 2:
		    torch.ones(3 << 20, device="cuda")
	END
	record --ranks roles --world 4 -o run.cft -- "$python" run.py 10 && grep -q 'made no group of ranks' log && grep -q 'rank 0 stands for ranks 0-3; the same ran: 3' log || wrong log
	record --ranks roles --world 4 -o run.cft -- "$python" run.py 10 other && grep -q 'rank 0 stands for ranks 0-3; others: 3' log || wrong log
	record --ranks 0-3 --memory 1G --world 4 -o run.cft -- "$python" run.py 10 && [ "$("$cufrag" info run.cft | grep -c '^device')" = 4 ] || wrong log
	! record --ranks roles --world 4 -o run.cft -- "$python" run.py none && grep -q 'ended with status 1 before its first step' log || wrong log
}

# what launchers give their processes is there where cufrag starts these: the program says the same of itself as under the launcher
launcher() { # KIND "WHAT IT SAYS" OPTIONS OF LAYOUT -- COMMAND
	local kind=$1 said=$2 options=()
	shift 2
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	rm -f seen
	HF_HUB_OFFLINE=1 "$cufrag" layout --no-gpu --gpu h100 --world 2 --policies pytorch --fresh --check 0 "${options[@]}" -- "$@" > out 2> log || wrong log out
	grep -qx "$kind $said" seen || wrong seen log
	[ "${theirs:-}" ] || return 0 # no more to see
	rm -f seen
	HF_HUB_OFFLINE=1 record --gpu h100 -o own.cft -- "$@" && grep -qx "$kind $said" seen || wrong seen log
}

test_layout_does_what_torchs_launcher_does() {
	theirs=1 launcher plain 2 -- "$python" -m torch.distributed.launch --nproc_per_node=2 "$root/tests/torch/launchers.py" plain
}

test_layout_does_what_accelerate_does() {
	local program=$root/tests/torch/launchers.py
	has 'import accelerate' 'no accelerate in this environment'
	printf '%s\n' 'distributed_type: FSDP' 'fsdp_config:' '  fsdp_version: 2' '  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP' \
		'  fsdp_transformer_layer_cls_to_wrap: Block' 'num_machines: 1' 'num_processes: 8' > fsdp.yaml
	theirs=1 launcher accelerate 'FSDP bf16 2' -- "$env/bin/accelerate" launch --num_processes 2 --mixed_precision bf16 --config_file fsdp.yaml "$program" accelerate &&
		launcher accelerate 'FSDP fp16 2' --preset huggingface --vary precision=fp16 -- "$env/bin/accelerate" launch --config_file=fsdp.yaml "$program" accelerate
}

test_layout_does_what_deepspeed_does() {
	local program=$root/tests/torch/launchers.py
	has_package deepspeed DeepSpeed
	echo '{ "train_micro_batch_size_per_gpu": 2, "bf16": { "enabled": true }, "zero_optimization": { "stage": 3 },
		"optimizer": { "type": "AdamW", "params": { "torch_adam": true } } }' > ds.json
	theirs=1 launcher deepspeed '3 2' -- "$env/bin/deepspeed" --num_gpus 2 "$program" --deepspeed_config ds.json deepspeed &&
		launcher deepspeed '1 4' --preset deepspeed --vary zero=1 --vary mb=4 -- "$env/bin/deepspeed" --num_gpus 2 "$program" --deepspeed_config ds.json deepspeed
}

test_layout_does_what_the_trainer_does() {
	has 'from transformers import Trainer; import accelerate' 'no transformers with accelerate in this environment'
	launcher trainer '4 True' --preset huggingface --vary mb=4 --vary ac=full -- "$env/bin/torchrun" --nproc_per_node=2 "$root/tests/torch/launchers.py" \
		--output_dir out.dir --max_steps 3 --per-device-train-batch-size=1 --report_to none --save_strategy no trainer
}

# the same figures as the change made by hand; runs that are forked are the program's own, random numbers too
test_advise_is_what_a_change_by_hand_needs() {
	cat > run.py <<- 'END'
		import random, sys, torch, torch.nn as nn
		from torch.utils.checkpoint import checkpoint
		random.seed(3)
		class Net(nn.Module):
		    def __init__(self):
		        super().__init__()
		        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(6))
		    def forward(self, x):
		        for b in self.blocks:
		            x = checkpoint(b, x, use_reentrant=False) if "checkpoint" in sys.argv else b(x)
		        return x.square().mean()
		m, kept = Net().cuda(), []
		o = (torch.optim.SGD if "sgd" in sys.argv else torch.optim.AdamW)(m.parameters(), lr=0.1)
		for step in range(5):
		    x = torch.randn(2 * random.randrange(1000, 4000), 512, device="cuda")
		    for h in x.chunk(2) if "accumulate" in sys.argv else [x]:
		        loss = m(h) / len([x, x] if "accumulate" in sys.argv else [x])
		        loss.backward()
		    o.step(); o.zero_grad()
		    kept.append(x.cpu() if "kept_tensors" in sys.argv else x)
	END
	"$cufrag" advise --changes checkpoint,sgd,accumulate,kept_tensors --json a.json -- "$python" run.py > out 2>&1 || wrong out
	for change in checkpoint sgd accumulate kept_tensors; do
		record -o hand.cft -- "$python" run.py $change && "$cufrag" replay hand.cft --policy pytorch 2> err | awk '$1 == "peak_requested_bytes" { print $2 }' > hand
		python3 -c 'import json, sys
print(next(c["requested_bytes"] for c in json.load(open("a.json"))["changes"] if c["change"] == sys.argv[1]))' $change > tried
		cmp hand tried || { echo "$change"; wrong hand tried out; }
	done
	grep -q '"where": "run.py:20"' a.json && ! pgrep -f "$PWD/run.py" || wrong out
}

# the loss of a language model in chunks, with and without logits in what the model gives
test_advise_chunks_the_loss() {
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn, torch.nn.functional as F
		from torch.utils.checkpoint import checkpoint
		e, head = nn.Embedding(8000, 128).cuda(), nn.Linear(128, 8000, bias=False).cuda()
		class Model(nn.Module):
		    def __init__(self):
		        super().__init__()
		        self.e, self.head, self.loss = e, head, nn.CrossEntropyLoss()
		    def forward(self, x):
		        h = self.e(x)
		        if "hand" in sys.argv:
		            part = lambda h, y: F.cross_entropy(self.head(h).float(), y, reduction="sum")
		            h, y, total = h[:, :-1].reshape(-1, 128), x[:, 1:].reshape(-1), 0
		            for a, b in zip(h.chunk(8), y.chunk(8)):
		                total = total + checkpoint(part, a, b, use_reentrant=False)
		            return None, total / (y != -100).sum()
		        logits = self.head(h).float()
		        return logits, self.loss(logits[..., :-1, :].contiguous().view(-1, 8000), x[:, 1:].reshape(-1))
		m = Model()
		o = torch.optim.AdamW(m.parameters())
		for step in range(3):
		    with torch.autocast("cuda", dtype=torch.bfloat16):
		        _, loss = m(torch.randint(0, 8000, (4, 257), device="cuda"))
		    loss.backward(); o.step(); o.zero_grad()
		    if "used" in sys.argv: _.argmax(-1)
	END
	"$cufrag" advise --changes chunked_loss,accumulate --json a.json -- "$python" run.py > out 2>&1 && grep -q 'chunked_loss  *run.py:17 ' out &&
		grep -q 'accumulate  *run.py:22 ' out && record -o hand.cft -- "$python" run.py hand || wrong out
	"$cufrag" replay hand.cft --policy pytorch 2> err | awk '$1 == "peak_requested_bytes" { print $2 }' > hand
	python3 -c 'import json
print(next(c["requested_bytes"] for c in json.load(open("a.json"))["changes"] if c["change"] == "chunked_loss"))' > tried
	cmp hand tried || wrong hand tried out
	"$cufrag" advise --changes chunked_loss -- "$python" run.py used > out 2>&1
	grep -q 'left out: chunked_loss: .*uses logits after their loss' out || wrong out
}

# what a change asks for at its peak, and what the same program asks for with the change made by hand (an argument: its name)
peak_of() { "$cufrag" replay "$1" --policy pytorch 2> err | awk '$1 == "peak_requested_bytes" { print $2 }'; }
as_by_hand() { # CHANGES NAME... : of run.py
	"$cufrag" advise --changes "$1" --json a.json ${ranks:+--ranks $ranks} -- "$python" run.py > out 2>&1 || wrong out
	shift
	local change
	for change; do
		record -o hand.cft ${ranks:+--ranks $ranks} -- "$python" run.py "$change" && peak_of hand.cft | sort -n | tail -1 > hand
		python3 -c 'import json, sys
print(*(c["requested_bytes"] for c in json.load(open("a.json"))["changes"] if c["change"] == sys.argv[1]))' "$change" > tried
		# a scalar more or less, as the loss is added up
		awk 'NR == FNR { hand = $1 } END { exit !(hand > 0 && $1 - hand <= 64 && hand - $1 <= 64) }' hand tried || { echo "$change"; wrong hand tried out; }
	done
}

# any number of parts; padding; metrics that keep graphs; batches that wait on the card; what pays
test_advise_of_batches() {
	cat > run.py <<- 'END'
		import random, sys, torch, torch.nn as nn, torch.nn.functional as F
		by_hand = sys.argv[1:]
		random.seed(0)
		class Model(nn.Module):
		    def __init__(self):
		        super().__init__()
		        self.e, self.head = nn.Embedding(1000, 256), nn.Linear(256, 1000)
		        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(256, w), nn.GELU(), nn.Linear(w, 256)) for w in (1024, 1024, 64, 64))
		    def forward(self, ids, mask, y):
		        x = self.e(ids)
		        for b in self.blocks:
		            x = x + b(x)
		        return F.cross_entropy(self.head(x).flatten(0, 1), y.flatten())
		def batch():
		    ids = torch.zeros(8, 512, dtype=torch.long)
		    for row in ids:
		        n = random.randrange(100, 400)
		        row[:n] = torch.tensor([random.randrange(1, 1000) for _ in range(n)])
		    if "trim_padding" in by_hand:
		        ids = ids[:, :int((ids != 0).any(0).nonzero().max()) + 1].contiguous()
		    return ids, (ids != 0).long(), torch.where(ids == 0, -100, ids)
		m = Model().cuda()
		o = torch.optim.AdamW(m.parameters(), fused=True)
		parts = 4 if "accumulate=4" in by_hand else 1
		for step in range(4):
		    ids, mask, y = (t.cuda() for t in batch())
		    if parts == 1: m(ids, mask, y).backward()
		    for i in range(parts if parts > 1 else 0):
		        (m(ids.chunk(parts)[i], mask.chunk(parts)[i], y.chunk(parts)[i]) / parts).backward()
		    o.step(); o.zero_grad()
	END
	# trimmed batches differ in length: with the segments of some releases of PyTorch, that saves nothing
	as_by_hand accumulate=4,trim_padding,pack_sequences,checkpoint_paying,saved_on_host_largest accumulate=4 &&
		grep -Eq '"what": "pad each .* [23][0-9] % of the tokens that reach Model are padding' a.json && grep -q 'pack_sequences .* tried ' out &&
		grep -q 'checkpoint_paying .* tried ' out && grep -q 'saved_on_host_largest .* tried ' out || wrong out
	# rows on the card that are not padded are smaller by hand, too: within 1 %
	record -o hand.cft -- "$python" run.py trim_padding && peak_of hand.cft > hand && python3 -c 'import json
tried = next(c["requested_bytes"] for c in json.load(open("a.json"))["changes"] if c["change"] == "trim_padding")
assert abs(tried - int(open("hand").read())) < 0.01 * tried, tried' || wrong hand out
	# a card that is too small for halves
	"$cufrag" advise --gpu h100 --capacity 120M --context 0 --margin 0 --changes accumulate -- "$python" run.py > out 2>&1
	grep -Eq '^answer: fits .*: accumulate=[3-8]; .* and completed on it' out || wrong out
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn
		by_hand = sys.argv[1:]
		m = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
		o = torch.optim.SGD(m.parameters(), lr=0.1)
		data = [torch.randn(2048, 1024) for _ in range(6)]
		if "batches_on_host" not in by_hand:
		    data = [x.cuda() for x in data]
		for x in data:
		    m(x.cuda()).square().mean().backward(); o.step(); o.zero_grad()
		del x
		total = 0
		for _ in range(6):
		    loss = m(torch.ones(4096, 1024, device="cuda")).square().mean()
		    total = total + (loss.detach() if "kept_graphs" in by_hand else loss)
	END
	as_by_hand batches_on_host,kept_graphs kept_graphs && grep -q 'kept_graphs  *run.py:14 ' out && grep -q 'batches_on_host  *run.py:7 ' out || wrong out
}

# copies of logits, outputs that nobody needs, pools of graphs
test_advise_of_what_is_not_needed() {
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn, torch.nn.functional as F
		by_hand = sys.argv[1:]
		class Config:
		    output_hidden_states = "outputs_off" not in by_hand
		class Model(nn.Module):
		    def __init__(self):
		        super().__init__()
		        self.config, self.e, self.head = Config(), nn.Embedding(8000, 128), nn.Linear(128, 8000, bias=False)
		        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(8))
		    def forward(self, x):
		        h, all = self.e(x), []
		        for layer in self.layers:
		            h = h + layer(h)
		            all.append(h * 2)
		        logits = self.head(h)
		        logits = logits if "logits_not_float" in by_hand else logits.float()
		        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
		        return {"loss": loss, "hidden_states": all if self.config.output_hidden_states else None}
		m = Model().to(torch.bfloat16).cuda()
		o = torch.optim.SGD(m.parameters(), lr=0.1)
		for step in range(3):
		    out = m(torch.randint(0, 8000, (8, 512), device="cuda"))
		    out["loss"].backward(); o.step(); o.zero_grad()
	END
	as_by_hand logits_not_float,outputs_off logits_not_float outputs_off && grep -q 'logits_not_float  *run.py:16 ' out || wrong out
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn
		m, graphs = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024)).cuda(), []
		with torch.no_grad():
		    for n in (4096, 2048, 1024):
		        x = torch.randn(n, 1024, device="cuda"); m(x)
		        g = torch.cuda.CUDAGraph()
		        with torch.cuda.graph(g, pool=graphs[0][0].pool() if graphs and "graph_pool" in sys.argv else None):
		            y = m(x)
		        graphs.append((g, x, y))
	END
	as_by_hand graph_pool graph_pool && grep -q 'graph_pool  *run.py:7 ' out || wrong out
}

# what torch.compile makes into one graph stays one, and what it leaves alone, as PyTorch 2.11 does a Sequential, is left alone
test_advise_of_a_compiled_program() {
	local model
	for model in Net nn.Sequential; do
		sed "s/MODEL/$model/" > run.py <<- 'END'
			import sys, torch, torch.nn as nn
			class Net(nn.Module):
			    def __init__(self, *blocks):
			        super().__init__()
			        self.blocks = nn.Sequential(*blocks)
			    def forward(self, x):
			        return self.blocks(x)
			m = MODEL(*[nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(3)]).cuda()
			o = (torch.optim.SGD if "sgd" in sys.argv else torch.optim.AdamW)(m.parameters(), lr=0.1)
			m.compile(fullgraph=True)
			for step in range(3):
			    nn.functional.cross_entropy(m(torch.randn(4096, 256, device="cuda")), torch.zeros(4096, dtype=torch.long, device="cuda")).backward()
			    o.step(); o.zero_grad()
		END
		as_by_hand sgd sgd && grep -q 'sgd  *run.py:9 ' out || wrong out
	done
}

# two models and their optimizers: a change is made in both, and names both
test_advise_of_a_gan() {
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn
		def block(i, o): return nn.Sequential(nn.Linear(i, 512), nn.ReLU(), nn.Linear(512, o))
		class Generator(nn.Module):
		    def __init__(self):
		        super().__init__()
		        self.blocks = nn.ModuleList(block(256, 256) for _ in range(6))
		    def forward(self, x):
		        for b in self.blocks:
		            x = torch.utils.checkpoint.checkpoint(b, x, use_reentrant=False) if "checkpoint" in sys.argv else b(x)
		        return x
		class Critic(Generator):
		    def __init__(self):
		        super().__init__()
		        self.blocks = self.blocks[:3]
		g, d = Generator().cuda(), Critic().cuda()
		kind = torch.optim.SGD if "sgd" in sys.argv else torch.optim.Adam
		og, od = kind(g.parameters(), lr=0.1), kind(d.parameters(), lr=0.1)
		with torch.no_grad(): g(torch.randn(8, 256, device="cuda"))
		for step in range(3):
		    fake = g(torch.randn(4096, 256, device="cuda"))
		    (d(torch.randn(4096, 256, device="cuda")).mean() - d(fake.detach()).mean()).backward(); od.step(); og.zero_grad(); od.zero_grad()
		    d(fake).mean().backward(); og.step(); og.zero_grad(); od.zero_grad()
	END
	as_by_hand checkpoint,sgd,saved_on_host,step_in_backward,accumulate checkpoint sgd && grep -q 'call Generator and Critic under' out &&
		grep -q 'each of the 9 blocks Sequential' out && grep -q 'SGD without momentum in place of Adam (2 optimizers)' out &&
		grep -q 'left out: step_in_backward: 2 optimizers' out && grep -q 'left out: accumulate: .* outside of Generator and Critic' out ||
		wrong out
}

# what cannot act within a graph says so
test_advise_of_logits_in_a_graph() {
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn, torch.nn.functional as F
		m = nn.Sequential(nn.Embedding(4000, 64), *[nn.Linear(64, 64) for _ in range(16)], nn.Linear(64, 4000)).cuda()
		o = torch.optim.AdamW(m.parameters())
		f = torch.compile(m, backend="eager") if len(sys.argv) < 2 else m
		def train(x):
		    return F.cross_entropy(f(x).flatten(0, 1), x.flatten())
		train = torch.compile(train, backend="eager") if len(sys.argv) > 1 else train
		for step in range(3):
		    train(torch.randint(0, 4000, (8, 256), device="cuda")).backward(); o.step(); o.zero_grad()
	END
	"$cufrag" advise --changes chunked_loss,saved_on_host,sgd -- "$python" run.py > out 2>&1 && grep -q 'call Sequential under' out && grep -q '^  sgd' out &&
		grep -q ' 3 steps each' out &&
		grep -q "left out: chunked_loss: has no effect within torch.compile's graph, in which Sequential makes its logits" out || wrong out
	"$cufrag" advise --changes chunked_loss,saved_on_host,sgd -- "$python" run.py function > out 2>&1 &&
		[ "$(grep -c "left out: .*: has no effect within torch.compile's graph: .* compiled at run.py:7" out)" = 2 ] || wrong out
}

test_advise_of_ranks() {
	local ranks=0,1
	has 'from torch.distributed.fsdp import fully_shard' 'no fully_shard in this PyTorch'
	cat > run.py <<- 'END'
		import sys, torch, torch.nn as nn, torch.distributed as dist
		from torch.distributed.fsdp import fully_shard
		from torch.distributed.optim import ZeroRedundancyOptimizer
		by_hand = sys.argv[1:]
		dist.init_process_group("nccl"); torch.cuda.set_device(dist.get_rank())
		m = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(4)]).cuda()
		if {"fsdp", "fsdp_zero2", "sharded"} & set(by_hand):
		    for b in m: fully_shard(b, reshard_after_forward="fsdp_zero2" not in by_hand)
		    fully_shard(m, reshard_after_forward="fsdp_zero2" not in by_hand)
		else:
		    m = nn.parallel.DistributedDataParallel(m)
		o = ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=0.1) if "zero_states" in by_hand else torch.optim.AdamW(m.parameters(), lr=0.1)
		for step in range(3):
		    m(torch.randn(128, 512, device="cuda")).square().mean().backward(); o.step(); o.zero_grad()
		dist.destroy_process_group()
	END
	as_by_hand fsdp,fsdp_zero2,zero_states fsdp fsdp_zero2 zero_states || return
	"$cufrag" advise --changes reshard_after_forward --ranks 0,1 -- "$python" run.py sharded > out 2>&1 &&
		grep -q 'tried without effect: reshard_after_forward' out || wrong out
	"$cufrag" advise --changes fsdp --ranks 0 -- "$python" run.py > out 2>&1 && grep -q 'left out: fsdp: .*; give --ranks' out || wrong out
}

# those of bitsandbytes and torchao where they lie in the folder of the wheel
test_advise_of_smaller_weights() {
	cat > run.py <<- 'END'
		import torch, torch.nn as nn
		m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
		with torch.no_grad(): m(torch.randn(64, 1024, device="cuda"))
	END
	"$cufrag" advise --changes weights_8bit,weights_4bit -- "$python" run.py > out 2>&1 && grep -Eq 'weights_8bit.*(torchao is not installed|tried)' out &&
		grep -Eq 'weights_4bit.*(is not installed|tried)' out || wrong out
}

test_advise_of_generation() {
	has 'import transformers' 'no transformers in this environment'
	cat > run.py <<- 'END'
		import torch
		from transformers import LlamaConfig, LlamaForCausalLM
		m = LlamaForCausalLM(LlamaConfig(vocab_size=4000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4)).to(torch.bfloat16).cuda()
		print(m.generate(torch.randint(0, 4000, (4, 1500)).cuda(), max_new_tokens=8, min_new_tokens=8).shape)
	END
	"$cufrag" advise --changes static_cache,cache_fp8,chunked_prefill -- "$python" run.py > out 2>&1 && grep -q 'tried 3 changes' out &&
		grep -q 'chunked_prefill .* tried ' out && ! grep -q 'left out' out || wrong out
}

test_expandable_segments() {
	local gpu # a reservation is as large as the card of the recording
	for gpu in h100 h200; do
		PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True record --gpu $gpu -o run.cft -- "$python" "$root/tests/torch/train.py" plain &&
			verified run.cft && "$cufrag" info run.cft > out && grep -q 'expandable segments on' out && grep -q '^checked .*verified identical' out || wrong out
	done
}

test_out_of_memory_is_that_of_the_card() {
	record --capacity 1G --context 512M -o run.cft -- "$python" "$root/tests/torch/train.py" oom || return
	grep -q 'caught OutOfMemoryError' log && verified run.cft
}

# as on an H100 (results/layout/beside.csv); derived for cards that were not measured; those whose context is given hold that alone
test_libraries_hold_memory_of_the_card() {
	local program='
import torch
def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    print("used", total - free - torch.cuda.memory_reserved())
used()
a = torch.randn(256, 256, device="cuda")
used()
(a @ a).sum()
used()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    a.add_(1)
used()'
	record --gpu h100 -o run.cft -- "$python" -c "$program" &&
		[ "$(awk '/^used/ { printf "%s ", $2 }' log)" = "552402944 648871936 718077952 791478272 " ] || wrong log
	record --gpu l4 -o run.cft -- "$python" -c "$program" &&
		[ "$(awk '/^used/ { printf "%s ", $2 }' log)" = "209715200 241172480 251658240 251658240 " ] || wrong log
	record --gpu h100 --context 512M -o run.cft -- "$python" -c "$program" &&
		[ "$(grep '^used' log | sort -u)" = 'used 536870912' ] || wrong log
}

test_what_ended_out_of_memory_is_a_lower_bound() {
	local layers='import torch
kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(4)]'
	"$cufrag" record --no-gpu --capacity 2G --context 512M --frames -o run.cft -- "$python" -c "$layers" > log 2>&1
	"$cufrag" fit run.cft --policy pytorch > out 2>&1
	[ $? = 6 ] && grep -q 'need is unknown above 2 GiB: .* ended out of memory at event 1 (<string>:2' out || wrong log out
	# with a program, it is recorded again with enough of it, on the card that is advised, too
	printf 'name,memory\nt4,2G\na100-40,6G\n' > cards.csv
	"$cufrag" fit --no-gpu --gpu t4 --capacity 2G --context 512M --cards cards.csv --margin 0 --policy pytorch -- "$python" -c "$layers" > out 2> log
	[ $? = 0 ] && grep -q '^answer: a100-40 .*reserves 4 GiB' out && [ "$(grep -cE '(t4 .*does not fit|a100-40 .*fits)  *yes' out)" = 2 ] || wrong log out
	# also where nothing was ever allocated
	printf 'import sys, torch\ntorch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")\n' > first.py
	"$cufrag" record --no-gpu --gpu h100 -o first.cft -- "$python" first.py 100 > log 2>&1
	"$cufrag" explain first.cft > out 2>&1
	grep -q 'a request for 100 GiB was refused; the program needs more memory: 0 B was live and 0 B was reserved under a limit of 78.66 GiB' out || wrong log out
	"$cufrag" layout --no-gpu --gpu h100 --exact --jobs 1 --vary '{g}=20,100' --csv layouts.csv -- "$python" first.py '{g}' > log 2>&1
	[ "$(cut -d, -f3,4 layouts.csv | tail -n 2 | tr '\n' ' ')" = 'g=20,fits g=100,does not fit ' ] || wrong log layouts.csv
	# what was caught is none
	record --capacity 1G --context 512M -o caught.cft -- "$python" "$root/tests/torch/train.py" oom && "$cufrag" fit caught.cft --policy pytorch > out 2>&1 || wrong out
}

# attention of Turing keeps its scores, and so needs more than on Hopper, for which this is recorded first
test_fit_records_for_each_capability() {
	cat > program.py <<- 'END'
		import torch
		q = torch.randn(1, 8, 4096, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
		torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
		print("runs")
	END
	record --gpu t4 -o t4.cft -- "$python" program.py || ! grep -q 'cutlassF: no kernel found to launch' log ||
		skip 'on the card itself, this PyTorch has no attention in bfloat16 for Turing'
	printf 'name,memory\nt4,16G\na100-40,40G\nh100,80G\n' > cards.csv
	"$cufrag" fit --no-gpu --cards cards.csv --policy pytorch --json fit.json -- "$python" program.py > out 2> log &&
		[ "$(grep -cE ' (fits|tight)  *yes' out)" = 3 ] && [ "$(grep -c '^runs' log)" = 1 ] || wrong log out
	"$python" -c 'import json; t4, a100, h100 = (card["headroom_ratio"] * card["total_bytes"] for card in json.load(open("fit.json"))["gpus"])
assert (16 << 30) - t4 > 1.5 * ((40 << 30) - a100), (t4, a100)' || wrong out
}

# a second call finds the recording, until the command, the environment or a file that was read changes
test_recordings_are_kept() {
	local fit=("$cufrag" fit --no-gpu --cards cards.csv --margin 0 --policy pytorch -- "$python" main.py)
	printf 'name,memory\nl4,22G\n' > cards.csv
	echo 'MIB = 8' > size.py && echo 2 > count.txt
	printf 'import torch, size\nkept = [torch.empty(size.MIB << 20, dtype=torch.uint8, device="cuda") for _ in range(int(open("count.txt").read()))]\n' > main.py
	export PYTHONDONTWRITEBYTECODE=1
	again() { "${fit[@]}" > out 2> log < "${1:-/dev/null}" || wrong log; }
	kept() { again "$@" && grep -q 'recorded on .* with the same command' log || { echo "$1: recorded again"; wrong log; }; }
	anew() { again "$@" && ! grep -q 'recorded on' log || { echo "$1: not recorded again"; return 1; }; }
	anew && cp out first && kept && cmp out first && SHLVL=77 kept || return
	echo 'MIB = 64' > size.py && anew && grep -q 'reserves 128 MiB' out && kept || wrong out
	echo 3 > count.txt && anew && grep -q 'reserves 192 MiB' out && kept || wrong out
	ANYTHING=1 anew && touch main.py && anew || return
	# nobody knows what a pipe holds
	again <(echo) && anew <(echo) || return
	fit=("$cufrag" fit --fresh "${fit[@]:2}") && anew || return
	# a program that reads what it writes is another one the next time
	echo 'open("state", "w").write("x"); open("state").read()' >> main.py
	fit=("$cufrag" fit "${fit[@]:3}") && again && anew
}

# as SGLang's launcher ends its scheduler
test_what_the_program_kills_writes_its_recording() {
	cat > kills.py <<- 'END'
		import multiprocessing, threading, time, torch
		def work(ready):
		    kept = torch.ones(1 << 20, device="cuda")
		    threading.Thread(target=time.sleep, args=(100,)).start()
		    ready.set()
		    time.sleep(100)
		if __name__ == "__main__":
		    spawn = multiprocessing.get_context("spawn")
		    ready = spawn.Event()
		    child = spawn.Process(target=work, args=(ready,))
		    child.start()
		    ready.wait()
		    child.kill()
		    child.join()
	END
	record --gpu h100 -o run.cft -- "$python" kills.py && verified run.cft || wrong log
}

# the parent is killed first, and its death kills who uses the card
test_what_a_parents_death_kills_writes_its_recording() {
	cat > tree.py <<- 'END'
		import contextlib, ctypes, multiprocessing, os, time, torch
		spawn = multiprocessing.get_context("spawn")
		def work(ready):
		    torch.cuda.init()
		    ctypes.CDLL(None).prctl(1, 9)
		    kept = torch.ones(1 << 20, device="cuda")
		    ready.put(os.getpid())
		    time.sleep(100)
		def control(ready):
		    spawn.Process(target=work, args=(ready,)).start()
		    time.sleep(100)
		if __name__ == "__main__":
		    ready = spawn.Queue()
		    child = spawn.Process(target=control, args=(ready,))
		    child.start()
		    worker = ready.get()
		    child.kill()
		    child.join()
		    with contextlib.suppress(ProcessLookupError):
		        os.kill(worker, 9)
	END
	record --gpu h100 -o run.cft -- "$python" tree.py && verified run.cft || wrong log
}

test_however_a_program_ends() {
	local how
	for how in exit:5 os_exit:5 raise:1 exec:5 SIGTERM:143 SIGKILL:3; do
		rm -f run.cft
		"$cufrag" record --no-gpu -o run.cft -- "$python" "$root/tests/torch/train.py" ends "${how%:*}" > log 2>&1
		[ $? = "${how#*:}" ] || { echo "$how"; wrong log; }
		if [ "$how" = SIGKILL:3 ]; then
			[ ! -e run.cft ] && grep -q 'was killed (SIGKILL)' log || wrong log
		else
			"$cufrag" info run.cft | grep -q ' 2 allocs' || { echo "$how"; wrong log; }
		fi
	done
}

# in Python's last steps, after the recording is written
test_ended_at_the_end() {
	"$cufrag" record --no-gpu -o run.cft -- "$python" -c 'import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
import torch
torch.ones(1000, device="cuda")' > log 2>&1
	[ $? = 143 ] && ! grep -q Traceback log && grep -q '1 device, 2 events' log || wrong log
}

test_limited_addresses() {
	! (ulimit -v 60000000 && record -o run.cft -- "$python" "$root/tests/torch/train.py" plain) > out && grep -q 'cannot reserve .* of addresses' log || wrong log
}

# what somebody took out of the cache, or a crash cut off, is made again
test_a_damaged_cache() {
	export XDG_CACHE_HOME=$PWD/cache
	record --values none -o run.cft -- "$python" "$root/tests/torch/train.py" plain || return
	rm cache/cufrag/nogpu-*/wheels/*/libcublas.so.*
	mkdir bin && CXX=none PATH=$PWD/bin record -o run.cft -- "$python" "$root/tests/torch/train.py" plain && grep -q 'no C++ compiler' log || return
	: > "$(echo cache/cufrag/nogpu-*/wheels/*)/cufrag_values.so"
	CXX=none PATH=$PWD/bin record -o run.cft -- "$python" "$root/tests/torch/train.py" plain && grep -q 'no C++ compiler' log
}

# nobody counted the cards: processes that the program spawns find one each; who asks for more is told the option
test_cards_that_nobody_counted() {
	cat > spawned.py <<'E'
import sys
import torch

def work(rank):
    torch.cuda.set_device(rank)
    torch.ones(1000, device="cuda")
    print("process", rank, "sees", torch.cuda.device_count(), flush=True)

if __name__ == "__main__":
    print("first sees", torch.cuda.device_count())
    torch.multiprocessing.spawn(work, nprocs=int(sys.argv[1]))
    print("first sees", torch.cuda.device_count())
    torch.ones(1000, device="cuda:" + sys.argv[2])
E
	record -o run.cft -- "$python" spawned.py 3 0 && [ "$(grep -c '^process . sees 3$' log)" = 3 ] && [ "$(grep -c '^first sees 1$' log)" = 2 ] &&
		! grep -q 'not there' log || wrong log
	! record -o run.cft -- "$python" spawned.py 2 3 > out && grep -q 'the program chose card 3, which is not there; --gpus 4 pretends it' log || wrong log
	! record --gpus 1 -o run.cft -- "$python" spawned.py 2 0 > out && grep -q 'card 1, which is not there; --gpus 2 pretends it' log || wrong log
	# Lightning counts by itself; of it, only what cufrag looks at
	mkdir -p lightning/fabric/utilities && touch lightning/__init__.py lightning/fabric/__init__.py lightning/fabric/utilities/__init__.py
	cat > lightning/fabric/utilities/device_parser.py <<'E'
def _sanitize_gpu_ids(gpus, include_cuda=False):
    raise ValueError("You requested gpu: %s" % gpus)
E
	echo 'import torch, lightning.fabric.utilities.device_parser as p; torch.ones(9, device="cuda"); p._sanitize_gpu_ids([0, 1], include_cuda=True)' > trainer.py
	! record -o run.cft -- "$python" trainer.py > out && grep -q 'card 1, which is not there; --gpus 2 pretends it' log || wrong log
}

test_cards_that_the_user_chose() {
	local list
	for list in 1,0 1 1,7; do
		CUDA_VISIBLE_DEVICES=0 PYTORCH_NVML_BASED_CUDA_CHECK=1 record --gpus 2 -o run.cft -- "$python" "$root/tests/torch/train.py" chosen $list &&
			grep -qx "seen $([ $list = 1,0 ] && echo 2 || echo 1)" log && grep -qx 'child 0' log && grep -q '^has cuda:0' log &&
			"$cufrag" info run.cft | grep -q '^device 1' || { echo "$list"; wrong log; }
	done
	CUDA_VISIBLE_DEVICES=1 record --gpus 2 -o run.cft -- "$python" "$root/tests/torch/train.py" plain && grep -q '^loss' log || wrong log
	! CUDA_VISIBLE_DEVICES= record --gpus 2 -o run.cft -- "$python" "$root/tests/torch/train.py" plain > out && grep -q 'CUDA_VISIBLE_DEVICES shows the program only' log ||
		wrong log
	# not of the machine's own cards
	CUDA_VISIBLE_DEVICES=7 record -o run.cft -- "$python" "$root/tests/torch/train.py" plain && grep -q '^loss' log
}

test_workers_of_torchrun() {
	record -o run.cft -- "$python" -m torch.distributed.run --nproc-per-node 2 "$root/tests/torch/train.py" ddp &&
		grep -q 'rank 1 of 2 done' log && grep -q '2 devices' log && verified run.cft || wrong log
}

# PyTorch's own recorder, of all that torchrun starts; the card is a pretended one all the same
test_own_recorder_of_every_rank() {
	"$cufrag" record --no-gpu --gpus 2 -o outer.cft -- "$cufrag" record --torch -o run.cft -- \
		"$python" -m torch.distributed.run --nproc-per-node 2 "$root/tests/torch/train.py" ddp > log 2>&1
	[ ! -e outer.cft ] && grep -q 'rank 1 of 2 done' log && grep -q 'run.cft: 2 devices' log && verified run.cft || wrong log
}

test_a_back_end_without_history() {
	PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync "$cufrag" record --no-gpu -o run.cft -- "$python" "$root/tests/torch/train.py" plain > log 2>&1
	[ $? = 3 ] && grep -q '^loss' log && grep -q 'keeps no history of its back end cudaMallocAsync' log || wrong log
}

test_small_values_are_computed() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" values || return
	grep -qx 'values 6 3 \[1, 4\] \[1, 2, 5\] True' log && grep -qx 'inference \[\[3, 2, 1\], \[6, 4, 2\], \[9, 6, 3\]\] 18' log || wrong log
}

# alike CARD CPU: losses to 0.001, norms to 1 %, and of each expert's tokens no more than 3 %.
alike() {
	[ "$(wc -l < "$1")" = "$(wc -l < "$2")" ] && paste "$1" "$2" | awk '
		function off(a, b) { return a > b ? a - b : b - a }
		$1 == "loss" { bad += off($2, $5) > 0.001 || off($3, $6) > 0.01 * $3; losses++ }
		$1 == "tokens" { for (i = 2; i <= 9; i++) { bad += off($i, $(i + 9)) > 0.03 * $i; even += $i == 256 } }
		END { exit !(losses == 3 && !bad && even < 8) }'
}

# All is computed: losses and the tokens of each expert are those of the CPU, also of compiled code and of what does not fit.
test_everything_is_computed_on_request() {
	local how kernel='kernel 32 6048' named=0
	has 'torch.nn.RMSNorm' 'no RMSNorm in this PyTorch'
	case "$(release triton) $(release numpy)" in
	3.1.*\ 2.*) kernel='kernel 0 0' named=1 ;; # Triton's interpreter stores nothing there: named, not computed
	esac
	for how in '' compiled; do
		record -o run.cft --values computed -- "$python" "$root/tests/torch/in_full.py" cuda $how || return
		[ -n "$how" ] || ! grep -q 'not computed' log || wrong log
		[ -z "$how" ] || { grep -qx "$kernel" log && [ "$(grep -c 'not computed' log)" = $named ]; } || wrong log
		grep -qx 'kept 0.9 0.9 1.109375 False' log || wrong log
		grep -qxF 'host [1.0, 9.0, 17.0, 25.0] [[10.0, 11.0], [18.0, 19.0]] True' log || wrong log
		grep '^[lt]o' log > card
		record -o run.cft -- "$python" "$root/tests/torch/in_full.py" cpu $how > /dev/null
		grep '^[lt]o' log > cpu
		alike card cpu || wrong card cpu
	done
	record -o run.cft --values computed -- "$python" "$root/tests/torch/train.py" compiled_writes && grep -qxF 'resolved [4, 1, 2] 28' log || wrong log
	record -o run.cft --values computed --memory 8M -- "$python" "$root/tests/torch/in_full.py" cuda &&
		grep -q 'unused for longest are forgotten' log && verified run.cft
}

test_operators_that_the_cpu_lacks_are_computed() {
	record -o run.cft --values computed -- "$python" "$root/tests/torch/instead.py" && grep -qx 'alike 28' log || wrong log
}

# A thread that pins memory sets one thread for itself, which autograd's threads take over: what the card computes there uses them all.
test_backward_passes_use_all_threads() {
	OMP_NUM_THREADS=3 record -o run.cft --values computed -- "$python" "$root/tests/torch/train.py" pinned_backward && grep -qx 'threads 3 1' log
}

# as if the race of Python 3.12 had left them behind
test_compile_workers_that_do_not_end() {
	has_package triton Triton
	has 'import torch._inductor.compile_worker.subproc_pool' 'no processes that compile in this PyTorch'
	record -o run.cft -- "$python" "$root/tests/torch/train.py" workers_stay && grep -qx 'compiled True' log
}

# what an H200 printed (driver 580.159.04, torch 2.11.0, 2026-11-28)
test_what_compiled_code_draws_is_computed() {
	has 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7))' 'dropout and Inductor draw in another way before PyTorch 2.7'
	record -o run.cft --values computed -- "$python" "$root/tests/torch/drawn_in_full.py" || return
	cat > wanted <<- 'END'
		odd 77 23 10a3042f7b
		odd 6 1 bf09508c8d
		odd 1001 304 83527ed26c
		odd 2050 637 8fc79f665e
		compiled 6590 7edd1e8264 True
		compiled 7684 e373bd5a95 True
		compiled 838386 a3cfba8c57 True
		drawn f4a42c1361 ['0.7536', '-0.8011', '1.2662'] cab8a2cb99
		after 32 ['0.8303', '0.1261']
	END
	grep -E '^(odd|compiled|drawn|after) ' log | diff wanted -
}

# Random numbers are those that a card draws, so what depends on them is as large as there.
test_random_numbers_are_those_of_a_card() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" drawn || return
	grep -qx 'words True True' log && grep -qxF "reals ['0.3990', '0.5167', '0.0249', '0.9401', '0.9459']" log &&
		grep -qxF "normal ['-0.9247', '-0.4253', '-2.6438', '0.1452', '-0.1209', '-0.5797']" log &&
		grep -qx 'given True' log && grep -qxF "own ['0.3990', '0.5167'] True False" log || wrong log
}

test_more_integers_than_are_kept_end_no_program() {
	"$cufrag" record --no-gpu -o run.cft -- timeout -k 2 60 "$python" "$root/tests/torch/train.py" many > log 2>&1 || wrong log
	grep -qx 'many 10 0' log || wrong log
}

test_what_is_known_is_computed() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" known || return
	grep -qx 'net True' log && grep -qx 'near 2000' log && grep -Fqx 'places [[5, 7, 9]] [[0, 1, 1, 3], [2, 0, 1, 1]]' log && grep -qx 'bounds 4000 4000 True' log &&
		[ "$("$cufrag" info run.cft | grep -c 'invented 1 x at .*: how many elements a mask selects')" = 2 ] && grep -qxF 'masked 2000 16000 [4, 5, 6, 7, 8]' log &&
		grep -qxF 'slices [[1.0, 1.0, 2.0], [3.0, 5.0, 4.0]] [4, 4] 64 8' log &&
		grep -qx 'mask 936' log && grep -qx 'chosen True 5.0 True False' log && grep -qx 'zero True True False 2500' log && grep -qx 'close True True False 20000' log && grep -qx 'parts True 0.0 True 0.0' log && grep -qx 'storage 2048 True True' log && grep -qx 'mode 64' log && grep -qx 'edges 5000 5000' log && grep -qx 'experts 128 {2500} {2500}' log && grep -qx 'time True True True True' log && grep -qx 'made 10' log && grep -qx 'pages True' log && grep -qx 'codes 0 7' log && grep -qx 'stale True True \[1.0\] 1.0' log || wrong log
}

# Threads of a library for numbers would wait for each other, so what is computed and what is invented takes one, in the backward pass, too.
test_values_take_one_thread() {
	cat > threads.py <<'E'
import os, torch

large = torch.nn.Parameter(torch.randn(4096, 4096, device="cuda"))
(large @ large).clamp_min(0).norm().backward()
names = [open("/proc/self/task/%s/comm" % task).read().strip() for task in os.listdir("/proc/self/task")]
print("threads", names.count("pt_autograd_0"), torch.get_num_threads())
E
	OMP_NUM_THREADS=2 record -o run.cft -- "$python" threads.py && grep -qx 'threads 1 2' log || wrong log
}

test_segments_follow_what_the_host_leaves() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" moved && verified run.cft && grep -q '^above .*True, True\]' log &&
		record -o run.cft -- "$python" "$root/tests/torch/train.py" holed && grep -qx 'hole True' log || wrong log
}

# The card is still busy with what another stream gave it, also where no other rank is.
test_streams_keep_what_they_use() {
	record --gpu h200 -o run.cft -- "$python" "$root/tests/torch/train.py" busy && grep -qxF 'busy [False, True]' log || wrong log
}

test_kernels_last_as_on_a_card() {
	record --gpu h200 -o run.cft -- "$python" "$root/tests/torch/train.py" lasting && grep -q '^lasting .* True$' log || wrong log
}

# Transformer Engine loads CUDA's libraries from where pip or the system put them; these files are none
test_libraries_loaded_by_their_places_are_the_pretended_ones() {
	cat > loads.py <<- 'END'
		import ctypes, os, torch
		torch.ones(1, device="cuda")
		major, part = (9, "graph") if torch.backends.cudnn.version() >= 90000 else (8, "ops_infer")
		for name in "libcudnn.so.%d.1.0" % major, "libcudnn_%s.so.%d" % (part, major), "libother.so.9":
		    with open(name, "w") as f:
		        f.write("not a library")
		os.symlink("libcudnn.so.%d.1.0" % major, "libcudnn.so")
		ctypes.CDLL("./libcudnn_%s.so.%d" % (part, major))
		print("cudnn", ctypes.CDLL(os.path.abspath("libcudnn.so")).cudnnGetVersion() == torch.backends.cudnn.version())
		try:
		    ctypes.CDLL("./libother.so.9")
		except OSError:
		    print("other no library")
	END
	record -o run.cft -- "$python" loads.py && grep -qx 'cudnn True' log && grep -qx 'other no library' log || wrong log
}

# a loop that nothing else ends waits for a number that nobody computed; others run to their own maximum
test_loops_that_wait_for_a_number_end() {
	cat > loops.py <<- 'END'
		import torch

		big = torch.rand(4096, 4096, device="cuda") @ torch.rand(4096, 4096, device="cuda")
		def balance(cost, rounds=0):
		    rows, error = torch.ones(4096, device="cuda"), 1e9
		    while error > 1e-4:
		        error = (cost @ rows - rows).abs().mean()
		        rounds += 1
		    return rounds
		def below(rounds=0):
		    while True:
		        rounds += 1
		        if (big.sum() * rounds).item() < 1:
		            break
		    return rounds
		def above(rounds=0):
		    error = big.sum().item()
		    while error < 1e6:
		        error = (big.sum() - rounds).item()
		        rounds += 1
		    return rounds
		def written(rounds=0):
		    while rounds < 50 and (big.sum() * rounds).item() != 7.25:
		        rounds += 1
		    while (big.sum() * rounds).item() != 7.25:
		        rounds += 1
		        if rounds == 100:
		            break
		    return rounds
		print("balanced", all(0 < balance(big) < 30 for _ in range(3)), "below", below() < 30, "above", above() < 30, "written", written())
	END
	timeout 120 "$cufrag" record --no-gpu -o run.cft -- "$python" loops.py > log 2>&1 && grep -qx 'balanced True below True above True written 100' log || wrong log
}

# Who looks at what compiled code makes is no owner of it: a second owner keeps gradients from being added in place
test_gradients_of_compiled_code_are_added_in_place() {
	cat > added.py <<- 'END'
		import torch
		import torch._inductor.compile_fx
		make = torch._C._dynamo.guards._empty_strided_cuda
		class Twice(torch.autograd.Function):
		    @staticmethod
		    def forward(ctx, x, how):
		        ctx.how = how
		        return x * 2
		    @staticmethod
		    def backward(ctx, g):
		        return ctx.how(), None
		x = torch.randn(64, 64, device="cuda", requires_grad=True)
		def requests(how):
		    x.grad = None
		    before = torch.cuda.memory_stats()["allocation.all.allocated"]
		    sum(Twice.apply(x, how) for _ in range(4)).sum().backward()
		    return torch.cuda.memory_stats()["allocation.all.allocated"] - before
		plain = requests(lambda: torch.empty(64, 64, device="cuda"))
		print("added", requests(lambda: make((64, 64), (64, 1), torch.float32)) - plain)
	END
	has 'import torch._dynamo; torch._C._dynamo.guards._empty_strided_cuda' "this PyTorch's compiled code makes tensors by operators"
	record -o run.cft -- "$python" added.py && grep -qx 'added 0' log || wrong log
}

# A first run on a card: what was compiled twice before Inductor's processes are ready is measured twice; they find what was measured
test_a_first_run_measures_its_kernels() {
	cat > measured.py <<- 'END'
		import time
		begin = time.process_time()
		import torch
		load_s = time.process_time() - begin
		from torch._inductor.runtime import triton_heuristics
		from torch._inductor.async_compile import AsyncCompile
		measure, count = triton_heuristics.CachingAutotuner.benchmark_all_configs, 0
		def benchmark_all_configs(*args, **kwargs):
		    global count
		    count += 1
		    return measure(*args, **kwargs)
		triton_heuristics.CachingAutotuner.benchmark_all_configs = benchmark_all_configs
		x, b, w = torch.randn(1 << 16, 128, device="cuda"), torch.randn(128, device="cuda"), torch.randn(128, 128, device="cuda")
		def one(x, b, w): return torch.nn.functional.gelu(x + b)
		def two(x, b, w): return torch.nn.functional.gelu(x + b), w @ w
		def three(x, b, w): return torch.nn.functional.gelu(x + b), w @ w @ w
		counts = []
		for f in one, two, three:
		    if f is three:
		        begin = time.thread_time()
		        while time.thread_time() - begin < 5 * load_s:
		            pass
		    torch.compile(f)(x, b, w)
		    counts.append(count)
		print("measured", *counts, torch.cuda.memory_stats()["allocation.all.allocated"])
	END
	has 'from torch._inductor.async_compile import AsyncCompile as a; a._ready_future' "this PyTorch's processes are always ready"
	record -o run.cft -- "$python" measured.py && grep '^measured 1 2 2 ' log > first && record -o run.cft -- "$python" measured.py || wrong log
	grep '^measured' log > second && cmp first second || wrong first second
	record --warm-caches -o run.cft -- "$python" measured.py && grep -q '^measured 1 2 2 ' log &&
		record --warm-caches -o run.cft -- "$python" measured.py && grep -q '^measured 0 0 0 ' log || wrong log
}

test_places_that_are_not_there() {
	# a compiler that links C++'s library statically, as some images have it
	printf '#!/bin/sh\nexec c++ -static-libstdc++ "$@"\n' > static-c++ && chmod +x static-c++
	XDG_CACHE_HOME=$PWD/cache CXX=$PWD/static-c++ record -o run.cft -- "$python" "$root/tests/torch/train.py" places || return
	[ "$(grep -c 'out of range.*device-side assert' log)" = 9 ] && [ "$(grep -c ' ran$' log)" = 6 ] &&
		grep -q '^positions aten::embedding: index 512 is out of range, there are 512' log || wrong log
}

test_programs_nobody_prepared() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" varied || return
	grep -qx 'scaler 65536.0 2' log && grep -qx 'modes \[True, True\]' log && grep -q '^qr' log && grep -q '^hessian' log &&
		grep -qx 'lengths \[30000, 30000\]' log && grep -qx 'inside \[3, 5\]' log && grep -qx 'packed \[2, 0, 1\] \[5, 8, 7\]' log && grep -q '^ctc' log || wrong log
	# the history is whole, although the program switched its own off
	verified run.cft && "$cufrag" info run.cft | grep -Eq ': [0-9]{3,} allocs'
}

# a step whose gradients overflow is skipped: the line is named, and the user may say which steps
test_a_gradient_scaler_may_skip_steps() {
	line=$(sed -n '/^def scaled/,/^def /{ /scaler.step/= }' "$root/tests/torch/train.py")
	record -o run.cft -- "$python" "$root/tests/torch/train.py" scaled && "$cufrag" info run.cft > info || return
	grep -q "invented 3 x at .*train.py:$line: whether gradients overflow" info && grep -qxF 'scaled 65536.0 [3, 3]' log || wrong log
	echo "train.py:$line 1 1 0" > told
	# before PyTorch 2.3, nobody computes the scale itself
	record --values told -o run.cft -- "$python" "$root/tests/torch/train.py" scaled &&
		grep -qxF "scaled $(case $(release torch) in 2.1.* | 2.2.*) echo 65536.0 ;; *) echo 16384.0 ;; esac) [1, 1]" log || wrong log
}

# Losses that add up frames or rows are too steep at their own end; --values computed, which computes all, says the same of these.
test_steep_losses_overflow() {
	has 'import torch; torch.amp.GradScaler' 'nobody computes the scale itself in this PyTorch'
	record -o run.cft -- "$python" "$root/tests/torch/train.py" steep &&
		grep -qx 'steep frames 8192.0 0' log && grep -qx 'steep sums 8192.0 0' log && grep -qx 'steep means 65536.0 2' log || wrong log
}

test_flex_attention() {
	has 'import triton, torch.nn.attention.flex_attention' 'no flex_attention in this PyTorch'
	record -o run.cft -- "$python" "$root/tests/torch/train.py" attention && [ "$(grep -c '^flex' log)" = 2 ] && verified run.cft
}

# 8 blocks of work, 16 blocks of keys, two waves on 58 or 72 multiprocessors: PyTorch's num_splits_heuristic
test_attention_splits_keys_by_multiprocessors() {
	has 'import torch.nn.attention' 'no torch.nn.attention in this PyTorch'
	record --gpu l4 -o run.cft -- "$python" "$root/tests/torch/train.py" splits && grep -qx 'splits 8.0' log &&
		record --gpu a10 -o run.cft -- "$python" "$root/tests/torch/train.py" splits && grep -qx 'splits 16.0' log || wrong log
}

test_what_scripted_code_makes_is_not_what_lay_there() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" scripted && grep -qx 'scripted (8, 64) 140' log || wrong log
}

test_tensors_of_another_process() {
	local way
	for way in False True; do
		PYTORCH_CUDA_ALLOC_CONF=expandable_segments:$way record -o run.cft -- "$python" "$root/tests/torch/train.py" shared &&
			grep -qx 'child has (True, 2000.0)' log && grep -qx 'child reads \[0, 1, 2\] and writes \[5, 6, 7\]' log || wrong log
	done
}

# of ranks that do not run, it is this rank's own
test_symmetric_memory() {
	has 'import torch.distributed._symmetric_memory; torch.ops.symm_mem.fused_all_gather_matmul' 'no symmetric memory in this PyTorch'
	local ranks=$root/tests/torch/ranks.py
	record --ranks 0-3 -o run.cft -- "$python" "$ranks" symmetric && ranks_agree 4 || wrong log
	record --gpus 2 -o run.cft -- "$python" -m torch.distributed.run --nproc-per-node 2 "$ranks" symmetric && ranks_agree 2 || wrong log
	has 'import torch.distributed._symmetric_memory as memory; memory.empty' 'ranks of this PyTorch meet in a file for symmetric memory'
	record --ranks 1 --world 4 -o run.cft -- "$python" "$ranks" symmetric && grep -q 'rank 1 done' log || wrong log
}

# of ranks that do not run, objects are this rank's own
test_objects_of_other_ranks() {
	record --ranks 1 --world 2 -o run.cft -- "$python" "$root/tests/torch/train.py" objects &&
		grep -qx "objects \[{'rank': 1}, {'rank': 1}\] \[1\] \[4, 4\] \[{'rank': 1}, {'rank': 1}\]" log || wrong log
	record --ranks 0,1 --world 2 -o run.cft -- "$python" "$root/tests/torch/train.py" objects &&
		[ "$(grep -Ecx "objects (\[\{'rank': 0\}, \{'rank': 1\}\]) \[0\] \[4, 4\] (None|\1)" log)" = 2 ] || wrong log
}

# ranks_agree N: so many ended, and none saw another value than it should
ranks_agree() { [ "$(grep -o 'rank [0-9] done' log | wc -l)" = "$1" ] && ! grep -q ' is .*, not ' log; }

test_ranks_talk() {
	has 'import inspect; inspect.signature(torch.distributed.init_process_group).parameters["device_id"]' 'before PyTorch 2.3, init_process_group takes no card'
	local several=("$python" -m torch.distributed.run --nproc-per-node 2) ranks=$root/tests/torch/ranks.py
	record --ranks 0-3 -o run.cft -- "$python" "$ranks" talk && ranks_agree 4 || wrong log
	record --gpus 2 -o run.cft -- "${several[@]}" "$ranks" talk && ranks_agree 2 || wrong log
	record --ranks 0,1 -o run.cft -- "$python" "$ranks" clocks && ranks_agree 2 || wrong log
	record --gpus 2 -o run.cft -- "${several[@]}" "$ranks" pipeline && ranks_agree 2 && verified run.cft ||
		wrong log
}

# one of each role speaks for all, and where memory is short ranks take turns: the same recordings as where all run
test_one_rank_of_each_role() {
	local ranks=$root/tests/torch/ranks.py
	has 'import torch.distributed.pipelining; from torch.distributed.fsdp import fully_shard' 'no pipelining or no fully_shard in this PyTorch'
	record --ranks roles --world 8 -o roles.cft -- "$python" "$ranks" roles && ranks_agree 4 &&
		grep -q 'rank 0 stands for ranks 0-3; the same ran: 3$' log && grep -q 'rank 4 stands for ranks 4-7; the same ran: 7$' log || wrong log
	record --ranks 0-7 -o all.cft -- "$python" "$ranks" roles && ranks_agree 8 || wrong log
	! record --ranks 0-7 --memory 64M -o no.cft -- "$python" "$ranks" roles > short && grep -q 'ranks have to run at a time.*raise --memory' short && [ ! -e no.cft ] || wrong short
	# room for five: four at a time
	local each
	each=$(sed -n 's/.* rank 0 alone took \([0-9]*\).* MiB of the host.*/\1/p' short | head -1)
	record --ranks 0-7 --memory $((5 * each + 5))M -o turns.cft -- "$python" "$ranks" roles && [ "$(grep -o 'rank [04] done' log | wc -l)" = 6 ] || wrong log
	for name in roles all turns; do "$cufrag" info $name.cft --json $name.json > /dev/null || return; done
	"$python" - <<'END'
import json
def need(name):
    trace = json.load(open(name))
    return trace["estimate"], [(d["peak"]["live_bytes"], d["allocs_count"], d["frees_count"]) for d in trace["devices"]]
(estimate, roles), (_, all_ranks), (_, turns) = (need(name + ".json") for name in ("roles", "all", "turns"))
assert len(roles) == 2 and roles == [all_ranks[0], all_ranks[4]] and turns == all_ranks, (roles, all_ranks, turns)
assert [(r["rank"], r["stands_for"], r["alike"]) for r in estimate["roles"]] == [(0, "0-3", "3"), (4, "4-7", "7")], estimate
END
}

# parts of a sequence go round in a ring before the first stage sends anything to the second
test_stages_are_found_behind_a_ring_of_attention() {
	has 'from torch.distributed.device_mesh import init_device_mesh' 'meshes have this name since PyTorch 2.2'
	cat > ring.py <<- 'END'
		import os, torch, torch.distributed as dist
		from torch.distributed.device_mesh import init_device_mesh

		rank = int(os.environ["RANK"])
		torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
		dist.init_process_group("nccl")
		mesh = init_device_mesh("cuda", (2, 2, 2), mesh_dim_names=("dp", "pp", "cp"))
		ring, line = (dist.get_process_group_ranks(mesh.get_group(name)) for name in ("cp", "pp"))
		stage = line.index(rank)
		net = torch.nn.Linear(1024, 1024 * (1 + stage)).cuda()
		optimizer = torch.optim.AdamW(net.parameters())
		for _ in range(2):
		    x, other = torch.randn(64, 1024, device="cuda"), torch.empty(64, 1024, device="cuda")
		    if stage:
		        dist.recv(x, line[0], group=mesh.get_group("pp"))
		    peer = ring[1 - ring.index(rank)]
		    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, peer, mesh.get_group("cp")), dist.P2POp(dist.irecv, other, peer, mesh.get_group("cp"))]):
		        work.wait()
		    y = net(x + other)
		    if not stage:
		        dist.send(y.detach(), line[1], group=mesh.get_group("pp"))
		    y.sum().backward()
		    dist.all_reduce(net.weight.grad, group=mesh.get_group("dp"))
		    optimizer.step()
		    optimizer.zero_grad()
	END
	record --ranks roles --world 8 -o run.cft -- "$python" ring.py || wrong log
	for role in '0 stands for ranks 0,4' '1 stands for ranks 1,5' '2 stands for ranks 2,6' '3 stands for ranks 3,7'; do
		grep -q "rank $role" log || wrong log
	done
}

test_ranks_that_meet_over_gloo() {
	has 'from torch._C._distributed_c10d import FakeProcessGroup' 'nothing stands in for gloo in this release'
	record --ranks 0 --world 2 -o alone.cft -- "$python" "$root/tests/torch/ranks.py" gloo && grep -o 'steps of rank 0: [0-9]* requests' log > alone || wrong log
	record --ranks 0,1 -o all.cft -- "$python" "$root/tests/torch/ranks.py" gloo && grep -o 'steps of rank 0: [0-9]* requests' log > all && diff alone all
}

# How fast a step is must not decide whether buckets of DistributedDataParallel are there twice.
# What a rank needs to save and to load does not depend on who else runs.
test_checkpoints_of_one_rank_are_those_of_all() {
	has 'from torch.distributed.fsdp import fully_shard' 'FSDP2 has this name since PyTorch 2.6'
	local way
	for way in 0,1 0 1 roles; do
		mkdir files.$way
		record --ranks $way --world 2 -o $way.cft -- "$python" "$root/tests/torch/ranks.py" checkpoints files.$way && grep -q 'rank . done' log &&
			! grep -q '^rank .* is .*, not ' log || wrong log
		"$cufrag" info $way.cft --json $way.json > /dev/null || return
	done
	"$python" - <<'END'
import json
def need(name):
    return [(d["peak"]["live_bytes"], d["allocs_count"]) for d in json.load(open(name + ".json"))["devices"]]
(zero, one), others = need("0,1"), need("0") + need("1") + need("roles")
# objects on their way through the card: where they are gathered and scattered, some more for other ranks
assert all(peak == wanted and wanted_count - 10 <= count <= wanted_count for (peak, count), (wanted, wanted_count) in zip(others, [zero, one, zero])), (zero, one, others)
END
}
test_buckets_are_the_same_each_time() {
	local ranks=$root/tests/torch/ranks.py
	record --ranks roles --world 4 -o roles.cft -- "$python" "$ranks" buckets && ! grep -q ' is .*, not ' log && grep -q 'rank 0 stands for ranks 0-3; the same ran: ' log &&
		! grep -q others log || wrong log
	record --ranks 0,1 -o all.cft -- "$python" "$ranks" buckets && ! grep -q ' is .*, not ' log || wrong log
	[ "$(grep -c 'the peak may be up to .* MiB higher' log)" = 1 ] || wrong log
	for name in roles all; do "$cufrag" info $name.cft --json $name.json > /dev/null || return; done
	"$python" - <<'END'
import json
roles, together = ([d["peak"]["live_bytes"] for d in json.load(open(name + ".json"))["devices"]] for name in ("roles", "all"))
assert roles[:1] * 2 == together, (roles, together)
END
}

# all tokens to the same experts: --again says how much of the peak depends on it
test_routers_are_balanced_unless_told() {
	record -o run.cft --again -- "$python" "$root/tests/torch/train.py" router && grep -qx 'largest 128 of 512' log && grep -qx 'largest 512 of 512' log &&
		"$cufrag" info run.cft | grep -q 'with the worst routing: peak live' && "$cufrag" info run.cft | grep -q "a router's choice of experts" || wrong log
	record -o run.cft --values skewed=1.5 -- "$python" "$root/tests/torch/train.py" router && grep -qx 'largest 192 of 512' log || wrong log
}

# a loop over the experts that some token chose runs those that were chosen, however many tokens there are
test_tables_of_choices() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" choices && grep -qx 'differ \[\]' log && grep -qx 'counts \[2500.0\] 128' log || wrong log
	record --values skewed=4 -o run.cft -- "$python" "$root/tests/torch/train.py" choices && grep -q '^counts .*10000.0\] 128$' log || wrong log
	record --values worst -o run.cft -- "$python" "$root/tests/torch/train.py" choices && grep -qx 'counts \[0.0, 40000.0\] 8' log || wrong log
}

# a table of floating-point zeros, as Megatron-LM's router makes it, in a net that is too large to be computed
test_tables_of_choices_in_a_large_net() {
	cat > large.py <<'E'
import torch

net = [torch.randn(1024, 1024, device="cuda") for _ in range(40)]
scores = torch.randn(8192, 1024, device="cuda") @ net[0][:8].t()
chosen = torch.zeros_like(scores).int().scatter(1, scores.topk(2, 1).indices, 1).bool()
print("counts", sorted(set(chosen.sum(0).tolist())), "places", len(chosen.nonzero()))
E
	record -o run.cft -- "$python" large.py && grep -qx 'counts \[2048\] places 16384' log || wrong log
}

# CUTLASS has all in PyTorch; what cuSPARSELt takes is not known without a card, and the program is told so
test_two_of_four_by_cutlass_only() {
	has 'from torch.sparse import SparseSemiStructuredTensor as s; s._FORCE_CUTLASS' 'this release has no choice of kernels'
	cat > sparse.py <<'E'
import torch
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured

for cutlass in True, False:
    SparseSemiStructuredTensor._FORCE_CUTLASS = cutlass
    try:
        weight = to_sparse_semi_structured(torch.tensor([0, 0, 1, 1]).tile((512, 128)).half().cuda())
        print("product", tuple(torch.nn.functional.linear(torch.randn(256, 512, device="cuda", dtype=torch.half), weight).shape))
    except RuntimeError as error:
        print("error", "cusparseLtInit" in str(error))
E
	record --gpu a100-80 -o run.cft -- "$python" sparse.py && grep -qx 'product (256, 512)' log && grep -qx 'error True' log &&
		grep -q 'missing from the pretended card, and failed: cusparseLtInit' log || wrong log
}

# those that lie in the wheel's folder
framework() {
	has_package "${1%_*}"
	[ "$1" != trl_lora ] || has_package peft PEFT
	record --gpu h200 --ranks 0,1 -o "$1.cft" -- "$python" "$root/tests/torch/frameworks.py" "$1" && verified "$1.cft" || wrong log
	grep -o "$1 [0-9.]* done [0-9 ]*" log | sort > got
	# figures of these releases in the same order; empty: not the same in each run
	awk -v job="$1" -v torch="$(release torch)" 'NR == FNR { if ($1 == job && $3 == torch) { n++; version = $2; for (i = 4; i <= 6; i++) known[n, i] = $i } next }
		n && $2 == version { for (i = 4; i <= 6; i++) if (known[FNR, i] != "" && known[FNR, i] != $i) { print $i " is not " known[FNR, i]; wrong = 1 } }
		END { exit wrong || FNR != 2 }' FS=, "$root/tests/torch/frameworks.csv" FS=' ' got || wrong log
}
for name in accelerate_ddp accelerate_fsdp2 lightning_ddp lightning_fsdp deepspeed_1 deepspeed_2 deepspeed_3 deepspeed_adam deepspeed_pipeline torchao_adam trl_sft trl_dpo trl_grpo trl_lora megatron_tp megatron_pipeline; do
	eval "test_framework_$name() { framework $name; }"
done
# it comes as source: pip compiles it for a quarter of an hour
for name in sequence context; do
	eval "test_engine_of_transformers_$name() { framework transformer_engine_$name; }"
done

# What an H200 measured, to the byte: of two ranks the number of requests, their bytes and the peaks of what is requested, allocated and reserved
job() { # NAME FIGURES
	[ "$(release torch)" = 2.11.0 ] || skip 'the figures of cards are those of PyTorch 2.11.0'
	[ "${1%_*}" != accelerate ] || has_package accelerate
	record --gpu h200 --ranks 0,1 -o run.cft -- "$python" "$root/results/nogpu/jobs.py" "$1" || wrong log
	awk -F, -v job="$1" -v n="$2" '$1 == job { split($3 " " $5 " " $7 " " $9 " " $11, figures, " "); line = $2; for (i = 1; i <= n; i++) line = line ", " figures[i]; print line }' \
		"$root/results/nogpu/jobs.csv" > known
	sed -n 's/^RESULT \[\(.*\), "ok"\]END$/\1/p' log | cut -d, -f "1-$(($2 + 1))" | sort > got
	[ "$(wc -l < known)" = 2 ] && cmp known got || wrong known got log
}
test_job_fsdp2_offload() { job fsdp2_offload 5; }
test_job_tensor_parallel() { job tensor_parallel_generates 5; }
test_job_accelerate_fsdp2() { job accelerate_fsdp2 5; }
# blocks wait for another stream, and on a shared card they wait longer
test_job_pipeline() { job pipeline_interleaved 2; }

# commands of frameworks, unchanged, on a small Llama
recipe() { # COMMAND
	[ -x "$env/bin/$1" ] || skip "no $1 in this environment"
	has 'import transformers, tokenizers' 'no transformers in this environment'
	export HF_HUB_OFFLINE=1 PATH=$env/bin:$PATH
	"$python" "$root/tests/torch/tiny_llama.py" tiny > log 2>&1 || wrong log
}

test_recipes_of_torchtune() {
	local small=(vocab_size=128256 num_layers=2 num_heads=4 num_kv_heads=2 embed_dim=256 max_seq_len=1024 intermediate_dim=512)
	local files=(tokenizer.path=tiny/original/tokenizer.model checkpointer.checkpoint_dir=tiny dataset.source=json dataset.data_files=tiny/texts.json
		dataset.split=train output_dir=out max_steps_per_epoch=2 gradient_accumulation_steps=1)
	recipe tune
	record --gpu h100 -o tune.cft -- tune run full_finetune_single_device --config llama3_2/1B_full_single_device \
		model._component_=torchtune.models.llama3_2.llama3_2 "${small[@]/#/model.}" "${files[@]}" optimizer=torch.optim.AdamW optimizer.fused=True && verified tune.cft &&
		"$cufrag" info tune.cft | grep -q 'at .*/recipes/full_finetune_single_device.py:' || wrong log
	record --gpu h100 -o tune2.cft -- tune run --nproc_per_node 2 lora_finetune_distributed --config llama3_2/1B_lora \
		model._component_=torchtune.models.llama3_2.lora_llama3_2 "${small[@]/#/model.}" "${files[@]}" && verified tune2.cft &&
		"$cufrag" info tune2.cft | grep -q '^device 1' || wrong log
}

test_recipe_of_axolotl() {
	recipe axolotl
	printf '%s\n' 'base_model: tiny' 'datasets:' '- { path: tiny/texts.json, ds_type: json, type: alpaca }' 'output_dir: out' 'sequence_len: 256' 'micro_batch_size: 2' \
		'gradient_accumulation_steps: 2' 'max_steps: 2' 'num_epochs: 1' 'optimizer: adamw_torch' 'learning_rate: 0.0002' 'bf16: true' 'adapter: lora' 'lora_r: 8' \
		'lora_alpha: 16' 'lora_target_linear: true' 'attn_implementation: sdpa' > sft.yaml
	AXOLOTL_DO_NOT_TRACK=1 record -o axolotl.cft -- axolotl train sft.yaml && grep -q 'Training completed' log && verified axolotl.cft || wrong log
}

# As in a release that comes: each private name of PyTorch and Triton that cufrag asks for is hidden from it in turn (tests/torch/hidden).
# The program comes to its end; what it asked for and says is the same, or cufrag says what is missing.
# The numbers of streams are not the same twice.
names_of() { # KIND NAMES OPTIONS OF RECORD
	local kind=$1 names=$2 name
	shift 2
	export PYTHONPATH=$root/tests/torch/hidden
	gone() { record "$@" -- "$python" "$root/tests/torch/hidden/programs.py" "$kind"; }
	HIDDEN_SEEN=$PWD/seen gone "$@" -o base.cft # compiles, which takes memory of its own
	gone "$@" -o base.cft && asked base.cft | cut -d' ' -f 1-3 > base && grep '^said' log > base.said || wrong log
	# not the modules of other names
	grep -E '\._|^triton' seen | LC_ALL=C sort -u | awk 'NR > 1 && index($0, last ".") != 1 { print last } { last = $0 } END { print last }' |
		grep -E "$names" > names || wrong seen
	while read -r name; do
		HIDDEN=$name gone "$@" -o run.cft > out < /dev/null
		grep -qx 'said done' log || { echo "$kind without $name"; wrong log; }
		grep -Eq 'went on without|not recorded|is lost' log || { asked run.cft | cut -d' ' -f 1-3 | cmp - base && grep '^said' log | cmp - base.said; } ||
			{ echo "$kind without $name"; wrong log; }
	done < names
}

test_names_that_are_gone() { names_of plain '^torch\.(_|cuda)'; }
test_names_that_are_gone_in_ranks() { names_of ranks 'distributed_c10d|nn\.parallel' --ranks 0 --world 2; }
test_names_that_are_gone_when_compiled() {
	has_package triton Triton
	names_of compiled 'triton|_dynamo'
}
test_names_that_are_gone_when_sharded() {
	has 'from torch.distributed.fsdp import fully_shard' 'no fully_shard in this PyTorch'
	names_of sharded 'distributed\.(tensor|device_mesh)' --ranks 0 --world 2
}

test_advice_without_a_name() {
	HIDDEN=torch.nn.modules.module.Module._call_impl PYTHONPATH=$root/tests/torch/hidden "$cufrag" advise --changes sgd -- \
		"$python" "$root/tests/torch/hidden/programs.py" plain > out 2>&1 && grep -q '^sgd .* tried ' out &&
		grep -q 'went on without what advise sees by Module._call_impl' out || wrong out
}

# nobody sees which module asks for a card, so only PyTorch itself is loaded before the forks
test_layouts_without_a_name() {
	HIDDEN=torch.cuda._lazy_init PYTHONPATH=$root/tests/torch/hidden "$cufrag" layout --no-gpu --gpu h100 --policies pytorch --check 0 --fresh --jobs 1 \
		--csv rows.csv --vary '{n}=1,2,3' -- "$python" "$root/tests/torch/hidden/programs.py" plain '{n}' > out 2> log &&
		[ "$(grep -c ',fits,' rows.csv)" = 3 ] && ! grep -q 'started anew' log || wrong out log
}

# nobody knows the roles without the groups
test_roles_without_the_groups() {
	! HIDDEN=torch.distributed.distributed_c10d._new_process_group_helper PYTHONPATH=$root/tests/torch/hidden record --ranks roles --world 4 -o run.cft -- \
		"$python" "$root/tests/torch/hidden/programs.py" ranks > out && grep -q 'went on without roles of ranks: .*_new_process_group_helper' log &&
		grep -q 'roles of the ranks are not known' log || wrong log
}

test_roles_without_a_step() {
	record --ranks roles --world 4 -o run.cft -- "$python" "$root/tests/torch/ranks.py" no_step && grep -q 'rank 0 stands for ranks 0-3; the same ran: 3$' log || wrong log
}
test_a_rank_that_never_comes() {
	record --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" leave_early && grep -qxF 'left alone [0, 0]' log && grep -q 'waited for a rank that has ended' log || wrong log
}
# deaf SIGNAL PID: a signal to cufrag or its group, PID, once its ranks wait; those are gone soon after cufrag, at most after 25 s
deaf() {
	for _ in {600..1}; do grep -qx deaf log && break || sleep 0.1; done
	kill "-$1" -- "$2"
	wait "${2#-}" 2> err
	for _ in {250..1}; do sed -n 's/^rank [01] is //p' log | xargs kill -0 2> err || break; sleep 0.1; done
	sed -n 's/^rank [01] is //p' log | xargs -n 1 kill -0 2> err && wrong log
	true
}
test_ranks_end_with_cufrag() {
	set -m
	"$cufrag" record --no-gpu --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" deaf > log 2>&1 &
	deaf KILL $! && grep -q 'cufrag was killed, so the ranks are ended' log || wrong log
	"$cufrag" record --no-gpu --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" deaf > log 2>&1 &
	deaf TERM -$! && grep -q 'did not end within 20 s are killed' log || wrong log
}
test_ranks_that_wait_for_each_other() {
	! "$cufrag" record --no-gpu --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" stuck > log 2>&1 &&
		grep -q 'ranks wait for each other' log && grep -q 'ranks.py.*in stuck' log || wrong log
}

test_ranks_that_make_other_calls() {
	record --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" differ && grep -q 'an all-reduce of 16 bytes.* an all-gather of 16 bytes' log || wrong log
	record --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" talk && ! grep -q 'would hang' log || wrong log
}

# what Python raises while C calls it back is dropped
test_a_rank_is_ended_while_it_waits() {
	! "$cufrag" record --no-gpu --ranks 0,1 -o run.cft -- "$python" "$root/tests/torch/ranks.py" end_waiting > log 2>&1 &&
		grep -qx 'rank 1 done' log && ! grep -q 'rank 0 done' log && grep -q 'ended with status 143' log && "$cufrag" info run.cft | grep -q '^device 1' || wrong log
}

# torchrun's store still has the names of the first attempt's groups
test_ranks_are_restarted() {
	record --gpus 2 -o run.cft -- "$python" -m torch.distributed.run --standalone --nproc-per-node 2 --max-restarts 1 "$root/tests/torch/ranks.py" restart &&
		[ "$(grep -c '^rank . done' log)" = 2 ] && ! grep -Eq ' is .*, not |would hang' log || wrong log
}

test_one_process_on_two_cards() {
	record --gpus 2 -o run.cft -- "$python" "$root/tests/torch/train.py" replicas && grep -qx 'replicas \[True, True\]' log &&
		"$cufrag" info run.cft | grep -q 'device 1' && verified run.cft || wrong log
}

test_captures_use_private_pools() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" graphs && verified run.cft && grep -q '^refused CUDA error: .*capture' log || wrong log
}

# transforms: what an H200 with CUDA 13.0 takes
test_other_libraries_of_cuda() {
	record -o run.cft -- "$python" "$root/tests/torch/train.py" libraries || return
	grep -qx 'transforms 77312 476544 0 5998104 62936' log && grep -qx 'sparse (300, 300) (300, 300)' log && grep -qx 'profiled True' log && grep -qx 'nvml 1 True True' log &&
		grep -qx 'refused RuntimeError' log && verified run.cft || wrong log
}

test_kernels_of_triton() {
	has_package triton Triton
	record -o run.cft -- "$python" "$root/tests/torch/train.py" triton_kernel && grep -qx 'triton 1.0 True' log &&
		"$cufrag" info run.cft | grep -q 'invented .* at .*train.py:' || wrong log
	record -o run.cft -- "$python" "$root/tests/torch/train.py" triton_writes && grep -qx 'writes first second added' log || wrong log
}

# 801: the call is not supported, and is listed; the library is loaded all the same
test_libraries_of_ones_own() {
	local cc="${CC:-cc} -w -shared -fPIC" runtime=libcudart-0a1b2c3d.so.13
	mkdir -p site/own.libs && ln -s "$("$python" -c 'from importlib.util import find_spec; print(*find_spec("torch").submodule_search_locations)')" site/torch &&
		$cc -DRUNTIME -Wl,-soname,$runtime -o site/own.libs/$runtime "$root/tests/torch/inside.c" &&
		$cc -DUSER -Wl,-rpath,"$PWD/site/own.libs" -o renamed.so "$root/tests/torch/inside.c" site/own.libs/$runtime || return
	PYTHONPATH=site record -o run.cft -- "$python" "$root/tests/torch/train.py" libraries_of_ones_own "$PWD/renamed.so" &&
		[ "$(grep -cx 'inside 1 True True' log)" = 2 ] || wrong log
	! grep -q '^beside' log || { grep -qx 'beside 801' log && grep -q 'and failed: cudaMallocPitch$' log; } || wrong log
}

# kernels of Inductor are compiled on the host and launched for nothing; "reduce-overhead" captures them
test_compiled_programs() {
	has_package triton Triton
	record -o run.cft -- "$python" "$root/tests/torch/train.py" compiled && verified run.cft && grep -qx 'made 0' log &&
		record -o graphs.cft -- "$python" "$root/tests/torch/train.py" compiled reduce-overhead && verified graphs.cft &&
		"$cufrag" info graphs.cft | grep -q 'private pools' || return
	record -o run.cft -- "$python" "$root/tests/torch/train.py" compiled_writes && grep -qxF 'resolved [0, 0, 0] 28' log || wrong log
}

test_what_a_program_writes_is_held_back() {
	record --keep-writes -o run.cft -- "$python" "$root/tests/torch/held_writes.py" prepare && [ -s best.pt ] || wrong log
	find . -type f ! -name log ! -name '*.cft' -print0 | sort -z | xargs -0 sha256sum > ../held.before
	for way in "record -o run.cft" "fit" "record --ranks 0,1 -o run.cft"; do
		"$cufrag" ${way%% *} --no-gpu $([ "$way" = "${way#* }" ] || echo "${way#* }") -- "$python" "$root/tests/torch/held_writes.py" > log 2>&1 || wrong log
		grep -q 'that the program wrote were held back' log && ! grep -q Assertion log || wrong log
		find . -type f ! -name log ! -name '*.cft' -print0 | sort -z | xargs -0 sha256sum | cmp - ../held.before || return
	done
}

test_one_rank_of_eight() {
	record --ranks 0,5 --world 8 -o run.cft -- "$python" "$root/tests/torch/train.py" ddp || return
	grep -q 'rank 5 of 8 done' log && grep -q '2 devices' log && verified run.cft
}

test_the_greatest_batch() {
	"$cufrag" fit --no-gpu --capacity 1200M --context 512M --vary '{b}=1..64' -- "$python" "$root/tests/torch/train.py" batch '{b}' > out 2> log ||
		wrong out log
	local best
	best=$(sed -n 's/^answer: of {b} = .*, \([0-9]*\) is the greatest .*/\1/p' out)
	[ -n "$best" ] && [ "$best" -gt 1 ] && [ "$best" -lt 64 ] || wrong out
	grep -Eq "^ +$((best + 1)) +no " out && grep -Eq "^ +$best +yes " out || wrong out
	# scale finds the same, from three other numbers
	"$cufrag" scale --no-gpu --capacity 1200M --context 512M --vary '{b}=2,4,8' --out curve -- \
		"$python" "$root/tests/torch/train.py" batch '{b}' > out 2> log || wrong out log
	grep -q "with the settings of the program it is $best\$" out && [ "$(wc -l < curve/scale.csv)" -gt 6 ] || wrong out
}

# The policy serves the program, and what it was asked is what PyTorch's own allocator is asked: call by call to the
# end of PyTorch's recording. What a program frees on its way out is there only under a policy.
live() { "$cufrag" run --no-gpu "$@" > log 2>&1 || wrong log; }
asked() { "$cufrag" export "$1" --to csv 2> err | awk -F, 'NR > 1 && $5 ~ /^(alloc|free)$/ { print $1, $5, $6, $7 }'; }
asked_alike() {
	asked "$1" > these && asked "$2" > those && [ -s these ] && cmp these <(head -n "$(wc -l < these)" those)
}

test_live_policies_are_asked_the_same() {
	record -o plain.cft -- "$python" "$root/tests/torch/train.py" plain || return
	local policy
	for policy in pytorch pytorch:expandable_segments:True vmm tlsf gmlake rmm-pool:initial=64M limit:bytes=2G/bfc; do
		live --policy "$policy" --record live.cft -- "$python" "$root/tests/torch/train.py" plain || return
		grep -c 'loss' log | grep -qx 3 && asked_alike plain.cft live.cft || { echo "$policy"; wrong log; }
		# and it reserves what its simulation does; vmm's budget goes by the clock, which is not the same twice
		"$cufrag" replay live.cft --policy "$policy" | awk -v live="$(sed -n 's/^reserved //p' log)" -v share="$([ "$policy" = vmm ] && echo 0.05 || echo 0)" '
			$1 == "peak_reserved_bytes" { same = live > 0 && live - $2 <= share * $2 && $2 - live <= share * $2 }
			END { exit !same }' || { echo "$policy"; tail -1 log; return 1; }
	done
}

test_live_captures_and_streams() {
	local policy
	for policy in pytorch vmm tlsf; do
		live --policy "$policy" --record live.cft -- "$python" "$root/tests/torch/train.py" graphs || return
		grep -q 'torch.Size' log && "$cufrag" replay live.cft --policy "$policy" > out || wrong log out
	done
}

# "reduce-overhead": graphs of Inductor, with pools of the policy
test_live_compiled() {
	has_package triton Triton
	local policy
	for policy in pytorch vmm; do
		live --policy "$policy" --record live.cft -- "$python" "$root/tests/torch/train.py" compiled reduce-overhead || return
		"$cufrag" info live.cft | grep -q 'private pools' && "$cufrag" replay live.cft --policy "$policy" > out || wrong log out
	done
}

test_live_program() {
	local policy
	for policy in vmm tlsf pytorch:expandable_segments:True; do
		live --gpus 2 --capacity 2G --context 512M --policy "$policy" --record live.cft -- "$python" "$root/tests/torch/train.py" live || return
		grep -qx "policy $policy" log && grep -qx 'fastest 14400' log && grep -qx 'child 0' log && [ "$(grep -c 'torch.Size' log)" = 2 ] && grep -q '^refused CUDA error: .*capture' log &&
			grep -q 'refused: .*Tried to allocate 3 GiB.*No policy can serve this' log &&
			{ "$cufrag" info live.cft 2> err > out; [ $? = 6 ]; } && grep -q '800 frees that wait for a stream' out || wrong log
	done # 6: what was refused was the largest request
	# an adaptor that writes when it ends
	live --gpus 2 --policy log:file=live.csv/bfc -- "$python" "$root/tests/torch/train.py" graphs && "$cufrag" info live.csv | grep -q 'format  *rmm'
}

test_live_policy_of_ones_own() {
	"${CC:-cc}" -std=c17 -O2 -shared -fPIC -I"$root/src/include" -o mine.so "$root/docs/external-policy/mine.c" || return
	live --policy limit:bytes=1G/./mine.so --record live.cft -- "$python" "$root/tests/torch/train.py" plain &&
		"$cufrag" replay live.cft --policy ./mine.so | grep -q "^peak_reserved_bytes  *$(sed -n 's/^reserved //p' log) " || wrong log
}

# What is recorded can be read while the program runs, and is there when it is killed.
test_live_recording_grows() {
	"$cufrag" run --no-gpu --policy vmm --record run.cft -- "$python" "$root/tests/torch/train.py" killed > log 2>&1
	[ $? = 137 ] && [ ! -e run.cft.parts ] && "$cufrag" info run.cft > out && grep -q '^seen .* allocs' log || wrong log out
	local seen all
	seen=$(sed -n 's/^seen .* \([0-9]*\) allocs.*/\1/p' log | tail -1)
	all=$(sed -n 's/.* \([0-9,]*\) allocs,.*/\1/p' out | tr -d ,)
	[ "$seen" -gt 100 ] && [ "$seen" -le "$all" ] || { echo "$seen of $all"; return 1; }
}

# A program that becomes another one (exec) keeps what it recorded before.
test_live_recording_of_a_chain() {
	cat > chain.py <<-'END'
	import os, sys, torch
	kept = [torch.zeros(1 << 20, device="cuda") for _ in range(50 if len(sys.argv) == 1 else 3)]
	if len(sys.argv) == 1:
	    os.execv(sys.executable, [sys.executable, "chain.py", "again"])
	END
	live --policy vmm --record run.cft -- "$python" chain.py && "$cufrag" info run.cft | sed -n 's/^  peak live.* in \([0-9]* blocks\).*/\1/p' > out
	[ "$(cat out)" = "50 blocks
3 blocks" ] || wrong out log
}

small_folder() {
	[ -w /dev/full ] && [ "$(id -u)" = 0 ] && mkdir tmp && mount -t tmpfs -o size=64k none tmp 2> err || skip 'cannot mount a small folder here'
}

# No room: the program goes on, the command says so and fails, and what there is stays in the folder of parts.
requests='import torch
for i in range(20000): k = torch.zeros(10 + i, device="cuda")
print("done")'
test_no_room_for_a_recording() {
	live -- "$python" -c 'import torch; torch.ones(1, device="cuda")' || return # all of cufrag is in its cache
	(ulimit -f 20 && "$cufrag" run --no-gpu --record run.cft -- "$python" -c "$requests" > log 2>&1)
	[ $? = 5 ] && grep -qx done log && grep -q '1 of 1 processes could not write all' log && [ ! -e run.cft ] && ls run.cft.parts/*.cft ||
		wrong log
}

test_no_room_in_a_folder() {
	live -- "$python" -c 'import torch; torch.ones(1, device="cuda")' || return
	small_folder
	TMPDIR=$PWD/tmp "$cufrag" record --no-gpu -o rec.cft -- "$python" -c "$requests" > log 2>&1
	local status=$?
	# what the program prints has no room, either
	head -c 64k /dev/zero > tmp/full 2> /dev/null
	TMPDIR=$PWD/tmp "$cufrag" layout --no-gpu --gpu h100 --policies pytorch --check 0 --vary '{n}=20000' \
		-- "$python" -c 'import sys, torch; torch.zeros(int(sys.argv[1]), device="cuda")' {n} > out 2>&1
	umount tmp
	[ $status = 5 ] && grep -q '1 of 1 recordings could not be written' log && [ ! -e rec.cft ] || wrong log
	grep -q 'n=20000 failed, .*set TMPDIR to a folder with more room' out || wrong out
}

test_live_is_seen_by_others() {
	[ -w /dev/shm ] || skip 'no shared memory'
	mkdir lib
	"${CC:-cc}" -w -std=gnu17 -O1 -shared -fPIC -o lib/libnvidia-ml.so.1 "$root/tests/cli/data/fake_nvml.c" || return
	FAKE_LIBRARIES=$PWD/lib live --policy vmm --record run.cft -- "$python" "$root/tests/torch/train.py" watched
	grep -qx 'seen by others' log || wrong log
}

test_live_out_of_memory() {
	live --capacity 1G --context 512M --policy vmm -- "$python" "$root/tests/torch/train.py" oom || return
	grep -q 'caught OutOfMemoryError 5' log
}

test_live_statistics_are_answered() {
	live --policy vmm --record live.cft -- "$python" "$root/tests/torch/answers.py" vmm && grep -qx answered log && [ -s snapshot.pickle ] ||
		wrong log
	# the history of a snapshot is one that every command reads
	"$cufrag" info history.pickle > out && grep -q ' 4 allocs, 2 frees' out || wrong out
}

run_cases "${2:-}"
