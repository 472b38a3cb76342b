# SPDX-License-Identifier: Apache-2.0
"""liger.py KERNEL: Liger-Kernel's own benchmark script, unchanged, of the repository in $CODE; the figures are those that it writes."""
import csv
import json
import os
import runpy
import sys

scripts = os.path.join(os.environ["CODE"], "benchmark/scripts")
data = os.path.join(scripts, "../data/all_benchmark_data.csv")
if os.path.exists(data):
    os.unlink(data)  # the published figures
os.makedirs(os.path.dirname(data), exist_ok=True)
sys.path.insert(0, scripts)
name = sys.argv[1]
sys.argv = ["benchmark_%s.py" % name, "--overwrite"]
os.chdir(scripts)
runpy.run_path(os.path.join(scripts, sys.argv[0]), run_name="__main__")
with open(data) as f:
    for row in csv.DictReader(f):
        if row["metric_name"] == "memory":
            print("figure", row["kernel_provider"], row["kernel_operation_mode"], row["x_name"] + "=%g" % float(row["x_value"]),
                  *("%s=%s" % (k, v) for k, v in json.loads(row["extra_benchmark_config_str"]).items()), row["y_value_50"])
