# SPDX-License-Identifier: Apache-2.0
"""liger.py KERNEL [memory] [T=N] [x=N,...] [apart] [--OPTION...]: Liger-Kernel's own benchmark script of the repository in $CODE; the figures are those that it
writes. With memory, it skips its measurements of speed; without, what they leave behind counts. T=N, x=N,...: its rows name this length, these sizes, the committed
script others. apart: in a process of its own, which it starts more of. OPTIONs are the script's."""
import csv
import json
import os
import re
import runpy
import subprocess
import sys

scripts = os.path.join(os.environ["CODE"], "benchmark/scripts")
data = os.path.join(scripts, "../data/all_benchmark_data.csv")
if os.path.exists(data):
    os.unlink(data)  # the published figures
os.makedirs(os.path.dirname(data), exist_ok=True)
sys.path[:0] = [scripts, os.path.join(os.environ["CODE"], "src")]  # some kernels are newer than the release that a row names
name = sys.argv[1]
if "memory" in sys.argv:
    import utils
    benchmark = utils.run_benchmarks
    utils.run_benchmarks = lambda metric_name, **more: metric_name == "memory" and benchmark(metric_name=metric_name, **more)
script = os.path.join(scripts, "benchmark_%s.py" % name)
changes = [(r'"T": \d+', '"T": ' + a[2:]) for a in sys.argv if a.startswith("T=")]
changes += [(r'"x_values": .*', '"x_values": [%s],' % a[2:]) for a in sys.argv if a.startswith("x=")]
if "memory" in sys.argv:
    changes.append((r"\bspeed_modes = .*", "speed_modes = ()"))  # of a script that measures in processes of its own, without run_benchmarks
for pattern, other in changes:
    with open(script) as f:
        text = f.read()
    if re.search(pattern, text):
        script = os.path.join(scripts, "changed_%s.py" % name)
        with open(script, "w") as f:
            f.write(re.sub(pattern, other, text))
if name == "sparse_multi_token_attention":  # its author split sparsemax in two functions, which are not committed: here they call the committed ones
    from types import SimpleNamespace

    from liger_kernel.ops import sparsemax
    function = sparsemax.LigerSparsemaxFunction

    def forward(x, dim):
        kept = []
        return function.forward(SimpleNamespace(save_for_backward=kept.append), x, dim), kept[0]
    sparsemax._sparsemax_forward = forward
    sparsemax._sparsemax_backward = lambda grad, out, dim: function.backward(SimpleNamespace(saved_tensors=(out,), dim=grad.dim() + dim), grad)[0]
apart = "apart" in sys.argv
sys.argv = [script, "--overwrite"] + [a for a in sys.argv if a.startswith("--")]
os.chdir(scripts)
try:
    if apart:
        subprocess.run([sys.executable] + sys.argv, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path[:2])), check=True)
    else:
        runpy.run_path(script, run_name="__main__")
finally:  # a script may fail as it tidies up
    with open(data) as f:
        for row in csv.DictReader(f):
            if row["metric_name"] == "memory":
                print("figure", row["kernel_provider"], row["kernel_operation_mode"], row["x_name"] + "=%g" % float(row["x_value"]),
                      *("%s=%s" % (k, v) for k, v in json.loads(row["extra_benchmark_config_str"]).items()), row["y_value_50"])
