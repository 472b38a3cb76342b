# SPDX-License-Identifier: Apache-2.0
"""How long the kernels of each operator take in one step of a program, from its second optimizer step to the third.

    durations.py OUT.csv SCRIPT ARGS...    each rank writes OUT.csv.RANK
    durations.py OUT.csv J NAME            a program of atscale.py
"""
import csv, json, os, runpy, sys, tempfile, collections
import torch
from torch.profiler import profile, ProfilerActivity
out = sys.argv[1] + "." + os.environ.get("RANK", "0")
steps, state = 0, {}
FIRST = int(os.environ.get("FIRST", "1"))

def finish(p):
    torch.cuda.synchronize()
    p.__exit__(None, None, None)
    t = tempfile.mktemp(suffix=".json")
    p.export_chrome_trace(t)
    ev = json.load(open(t))["traceEvents"]
    os.remove(t)
    ops, rows = {}, collections.OrderedDict()
    for e in ev:
        if e.get("cat") == "cpu_op" and "External id" in e.get("args", {}):
            ops[e["args"]["External id"]] = e
    per = {}
    for e in ev:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            i = e["args"].get("External id")
            per.setdefault(i, []).append((e["ts"], e["dur"], e["name"]))
    for i, ks in per.items():
        o = ops.get(i)
        a = o["args"] if o else {}
        key = (o["name"] if o else "?", json.dumps(a.get("Input Dims", "")), json.dumps(a.get("Input type", "")), json.dumps(a.get("Input Strides", "")), max(ks, key=lambda k: k[1])[2][:120], len(ks))
        r = rows.setdefault(key, [])
        r.append(sum(k[1] for k in ks))
    with open(out, "w") as f:
        w = csv.writer(f)
        w.writerow("op dims types strides kernel kernels count median_us total_us".split())
        for k, d in rows.items():
            d.sort()
            w.writerow(list(k) + [len(d), round(d[len(d) // 2], 2), round(sum(d), 1)])

def after(*_):
    global steps
    steps += 1
    if steps == FIRST:
        torch.cuda.synchronize()
        p = state["p"] = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)
        p.__enter__()
    elif steps == FIRST + 1 and "p" in state:
        finish(state.pop("p"))

if __name__ == "__main__":
    from torch.optim.optimizer import register_optimizer_step_post_hook
    register_optimizer_step_post_hook(after)
    if sys.argv[2] == "J":
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import atscale
        everyday = sys.modules["everyday"]
        import random
        torch.manual_seed(0)
        everyday.rng = random.Random(5)
        atscale.J[sys.argv[3]]()
    else:
        sys.argv = sys.argv[2:]
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")
