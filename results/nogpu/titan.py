# SPDX-License-Identifier: Apache-2.0
"""Ranks of torchtitan's large jobs (0.2.2, unchanged) on one card, or without one.

    titan.py all OUT SECONDS [WORKERS [GIB [NAME...]]]    on a card, one rank of each job at a time: rows to OUT/rows.csv, requests and segments to OUT/NAME.npz
    titan.py NAME OUT                                     one of them

PyTorch's groups of the kind "fake" have any size and one process: collectives do nothing, so values mean nothing, but PyTorch's allocator gets the requests of that
rank. (NCCL's memory lies beside it.) Without a card, the same, and the same rank among ranks that talk to each other:

    cufrag record --no-gpu --gpu h200 -- python titan.py NAME OUT
    cufrag record --no-gpu --gpu h200 --ranks RANK --world WORLD -- python titan.py NAME OUT        (a pipeline: --ranks roles)

A row: name, rank, "ok" or the error; requests, bytes requested; peaks requested, allocated, reserved; retries; seconds; MiB of the host. Settings are those of torchtitan's
own files where it has one; random tokens stand in for texts, so neither a tokenizer nor the packages datasets and tensorboard are needed.
"""
import csv, os, subprocess, sys, time, traceback, types

J = {}  # name: ranks in all, the rank, GiB that the card must have, tokens that a stage gets from the one before, options


def job(name, world, rank, gib, *options, gets=None):
    J[name] = world, rank, gib, gets, " ".join(options).split()


def model(name, flavor, batch, length, ac, steps=3):
    return "--model.name %s --model.flavor %s --training.local_batch_size %d --training.seq_len %d --training.steps %d --activation_checkpoint.mode %s" % (name, flavor, batch, length, steps, ac)


def split(**k):
    names = dict(tp="tensor_parallel", cp="context_parallel", pp="pipeline_parallel", ep="expert_parallel", hsdp="data_parallel_replicate", fsdp="data_parallel_shard")
    return " ".join("--parallelism.%s_degree %d" % (names[n], v) for n, v in k.items())


BY_OP = "selective --activation_checkpoint.selective_ac_option op"
COMPILED = "--compile.enable"
FLOAT8 = "--model.converters quantize.linear.float8 --quantize.linear.float8.filter_fqns output"
FP8_GATHERED = "--quantize.linear.float8.enable_fsdp_float8_all_gather --quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"
STAGES = split(pp=8, tp=8, fsdp=8)

job("c_llama8b_fsdp8", 8, 0, 43, model("llama3", "8B", 1, 8192, BY_OP), COMPILED)
job("c_llama8b_fsdp8_float8", 8, 0, 43, model("llama3", "8B", 1, 8192, BY_OP), COMPILED, FLOAT8, FP8_GATHERED)
job("llama405b_tp8_fsdp64", 512, 0, 35, model("llama3", "405B", 2, 8192, "full", 2), split(tp=8))
job("c_llama70b_tp8_fsdp32", 256, 0, 33, model("llama3", "70B", 2, 8192, BY_OP, 2), split(tp=8), COMPILED)
for stage, rank, gib in ("first", 0, 73), ("middle", 211, 62), ("last", 511, 62):
    job("llama405b_%s_stage" % stage, 512, rank, gib, model("llama3", "405B", 8, 8192, "full", 2), STAGES, gets=None if stage == "first" else (1, 1024, 16384))
job("c_qwen3_14b_fsdp8", 8, 7, 49, model("qwen3", "14B", 2, 4096, "full"), COMPILED)
job("llama70b_fsdp64", 64, 0, 53, model("llama3", "70B", 1, 8192, "full", 2))
job("llama70b_tp8_fsdp32", 256, 100, 24, model("llama3", "70B", 4, 8192, "full", 2), split(tp=8))
job("deepseek16b_fsdp8", 8, 1, 75, model("deepseek_v3", "16B", 4, 4096, BY_OP))
job("llama8b_cp2_fsdp4", 8, 3, 57, model("llama3", "8B", 1, 32768, "full"), split(cp=2))
job("llama8b_tp8_fsdp8", 64, 9, 32, model("llama3", "8B", 4, 8192, BY_OP), split(tp=8))
job("qwen3_30b_experts_fsdp16", 16, 0, 56, model("qwen3", "30B-A3B", 2, 4096, "full"))
job("llama8b_fsdp64", 64, 37, 39, model("llama3", "8B", 1, 8192, BY_OP))
job("llama8b_fsdp8", 8, 0, 54, model("llama3", "8B", 1, 8192, BY_OP))
job("llama8b_fsdp8_keeps_all", 8, 5, 78, model("llama3", "8B", 1, 8192, "none"))
job("llama8b_fsdp8_full", 8, 0, 58, model("llama3", "8B", 2, 8192, "full"))
job("qwen3_32b_fsdp16", 16, 2, 80, model("qwen3", "32B", 1, 4096, BY_OP))
job("llama8b_hsdp4x8", 32, 17, 54, model("llama3", "8B", 1, 8192, BY_OP), split(hsdp=4, fsdp=8))


def stand_ins():
    for name, parts in {"datasets": ["Dataset", "load_dataset"], "datasets.distributed": ["split_dataset_by_node"], "torch.utils.tensorboard": ["SummaryWriter"]}.items():
        sys.modules[name] = m = types.ModuleType(name)
        for p in parts:
            setattr(m, p, None)


def lone(rank, gets):
    """Groups of ranks that are not there; the stage before has said what it sends."""
    import torch, torch.distributed as dist
    from torch.distributed.pipelining import stage
    from torchtitan.distributed import utils

    def told(objects, **k):
        objects[0] = (torch.empty(gets, dtype=torch.bfloat16, device="meta"),)

    utils.init_fake_mode = lambda world, mode: dist.init_process_group("fake", rank=rank, world_size=world)
    stage.dist = types.SimpleNamespace(**vars(dist) | dict(recv_object_list=told))


def run():
    import torch
    import torchtitan.protocols.train_spec as specs
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.train import main, Trainer

    class Words(BaseDataLoader):
        def __init__(self, dp_rank, job_config, **k):
            self.shape, self.draw = (job_config.training.local_batch_size, job_config.training.seq_len), torch.Generator().manual_seed(dp_rank)

        def __iter__(self):
            while True:
                x, y = (torch.randint(0, 100000, self.shape, generator=self.draw) for _ in "xy")
                yield {"input": x}, y

        def state_dict(self):
            return {}

        def load_state_dict(self, _):
            pass

    def spec(name, get=specs.get_train_spec):
        s = get(name)
        for a in s.model_args.values():
            a.attn_type = "sdpa"  # DeepSeek's own flex_attention tries kernels for minutes
        s.build_tokenizer_fn, s.build_dataloader_fn = (lambda _: types.SimpleNamespace(eos_id=2)), Words
        return s

    specs.get_train_spec = spec
    main(Trainer)


def one(name, out):
    world, rank, _, gets, options = J[name]
    begun = time.time()
    talks = "RANK" in os.environ
    sys.argv = ["train", "--metrics.log_freq", "1", *options]  # read when torchtitan is imported
    if not talks:
        os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(world), NGPU=str(world))
        sys.argv += ["--comm.mode", "fake_backend"]
    rank = os.environ["RANK"]
    stand_ins()
    import numpy as np, resource, torch

    torch.cuda.memory._record_memory_history(max_entries=5000000, context=None)
    torch.cuda.reset_peak_memory_stats = lambda *_: None  # the largest of all steps, not of the last
    note = "ok"
    try:
        talks or lone(int(rank), gets)
        run()
    except BaseException as e:
        traceback.print_exc()
        note = "FAILED " + repr(e)[:200].replace("\n", " ")
    s = torch.cuda.memory_stats()
    keys = "allocation.all.allocated requested_bytes.all.allocated requested_bytes.all.peak allocated_bytes.all.peak reserved_bytes.all.peak num_alloc_retries"
    row = [name, rank, note, *(s.get(k, 0) for k in keys.split()), round(time.time() - begun, 1), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10]
    kinds = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"]
    trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    os.makedirs(out, exist_ok=True)
    np.savez_compressed(os.path.join(out, "%s.%s.npz" % (name, rank) if talks else name), np.array([(kinds.index(e["action"]), e["size"], e["addr"]) for e in trace if e["action"] in kinds]))
    with open(os.path.join(out, "rows.csv"), "a") as f:
        csv.writer(f).writerow(row)
    print(*row, flush=True)


def every(out, seconds, workers=6, gib=128, *names):
    """As many at a time as the card has room for, each with caches of its own."""
    end, live, todo = time.time() + float(seconds), {}, list(names or J)
    os.makedirs(out, exist_ok=True)
    while todo or live:
        for name in list(todo):
            if len(live) < int(workers) and sum(J[n][2] for n, _ in live.values()) + J[name][2] <= float(gib):
                todo.remove(name)
                caches = {k: os.path.abspath(os.path.join(out, "cache", name, k)) for k in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
                with open(os.path.join(out, name + ".log"), "w") as f:
                    p = subprocess.Popen([sys.executable, __file__, name, out], env=os.environ | caches, stdout=f, stderr=f)
                live[p] = name, time.time()
        time.sleep(0.1)
        for p in [p for p in live if p.poll() is not None]:
            name, since = live.pop(p)
            print("%s: %d, %.0f s" % (name, p.returncode, time.time() - since), flush=True)
        if time.time() > end:
            print("ended:", *(n for n, _ in live.values()), "not begun:", *todo, flush=True)
            for p in live:
                p.kill()
            break


if __name__ == "__main__":
    every(*sys.argv[2:]) if sys.argv[1] == "all" else one(*sys.argv[1:3])
