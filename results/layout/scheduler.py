# SPDX-License-Identifier: Apache-2.0
"""vLLM's own V1 scheduler (0.11.0) without a model: the requests of a CSV arrive, each step takes a fixed time, and each request whose
tokens are all processed makes one. Prints what cufrag kvcache says.

    scheduler.py --make requests.csv
    scheduler.py requests.csv CACHE_TOKENS BLOCK STEP_US MAX_SEQS BATCHED_TOKENS MODEL_FOLDER

One block more than CACHE_TOKENS is given to it, because it keeps one for itself. It asks for a GPU when it is imported: run it under
cufrag record --no-gpu.
"""
import csv
import json
import random
import sys


def make(model, blocks, block, seqs, batched):
    import torch
    from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager
    mc = ModelConfig(model=model, skip_tokenizer_init=True, max_model_len=8192)
    sc = SchedulerConfig(max_num_seqs=seqs, max_num_batched_tokens=batched, max_model_len=8192, enable_chunked_prefill=True)
    cc = CacheConfig(block_size=block, gpu_memory_utilization=0.9, swap_space=0, cache_dtype="auto", enable_prefix_caching=False)
    vc = VllmConfig(scheduler_config=sc, model_config=mc, cache_config=cc)
    kv = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[],
                       kv_cache_groups=[KVCacheGroupSpec(["layer"], FullAttentionSpec(block, 1, 1, torch.float32, False))])
    cc.num_gpu_blocks = blocks
    return Scheduler(vllm_config=vc, kv_cache_config=kv, log_stats=True, structured_output_manager=StructuredOutputManager(vc))

def main():
    from vllm.sampling_params import SamplingParams
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request
    path, tokens, block, step_us, seqs, batched, model = sys.argv[1:8]
    block, step, seqs, batched = int(block), int(step_us) / 1e6, int(seqs), int(batched)
    blocks = int(tokens) // block + 1  # one is the null block
    s = make(model, blocks, block, seqs, batched)
    rows = sorted(((float(a), i, int(p), int(o)) for i, (a, p, o) in enumerate(r for r in csv.reader(open(path)) if r[0][0].isdigit())))
    base = rows[0][0]; now = 0.0; at = 0; n = len(rows); left = n
    pool = s.kv_cache_manager.block_pool
    peak = peak_run = peak_wait = preemptions = 0; first = None; pre = set(); status = {}
    live = {}
    while left:
        while at < n and round((rows[at][0] - base) * 1e6) <= round(now * 1e6):
            _, i, p, o = rows[at]; at += 1
            r = Request(request_id=str(i), prompt_token_ids=[1] * p, sampling_params=SamplingParams(max_tokens=o, ignore_eos=True), pooling_params=None, eos_token_id=None)
            live[str(i)] = r; s.add_request(r)
        if not live:
            now = rows[at][0] - base; continue
        running = [r.request_id for r in s.running]
        out = s.schedule()
        after = {r.request_id for r in s.running}
        for k in running:
            if k not in after and k in live:
                preemptions += 1; pre.add(k); first = now if first is None else first
        peak = max(peak, blocks - 1 - pool.get_num_free_blocks())
        peak_run = max(peak_run, len(s.running)); peak_wait = max(peak_wait, len(s.waiting))
        ids = list(out.num_scheduled_tokens)
        sampled = []
        for k in ids:
            r = live[k]
            sampled.append([7] if r.num_computed_tokens >= r.num_tokens else [])
        mo = ModelRunnerOutput(req_ids=ids, req_id_to_index={k: j for j, k in enumerate(ids)}, sampled_token_ids=sampled, logprobs=None, prompt_logprobs_dict={}, pooler_output=[])
        s.update_from_output(out, mo)
        for k in ids:
            if live[k].is_finished():
                del live[k]; left -= 1
        now += step
    print(json.dumps({"peak_blocks": peak, "peak_running": peak_run, "peak_waiting": peak_wait, "preemptions": preemptions, "preempted_requests": len(pre), "first_preemption_s": first, "end_s": round(now, 6)}))


def make_requests(path):
    random.seed(5)
    now = 0
    with open(path, "w") as f:
        for i in range(1500):
            now += random.expovariate(14 if 500 < i < 900 else 6)
            prompt = max(1, min(1500, int(random.expovariate(1 / 400))))
            f.write("%.6f,%d,%d\n" % (now, prompt, max(1, min(900, int(random.expovariate(1 / 300))))))


if __name__ == "__main__":
    make_requests(sys.argv[2]) if sys.argv[1] == "--make" else main()
