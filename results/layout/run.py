# SPDX-License-Identifier: Apache-2.0
"""Each layout of layouts.csv on the real card: without a limit, at the predicted limit, 2 % below it. run.py OUTDIR"""
import concurrent.futures, csv, json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
def one(task):
    row, mode, limit = task
    p = subprocess.run([sys.executable, here + "/one.py", str(limit), *row["args"].split()], capture_output=True, text=True, timeout=200)
    line = [x for x in p.stdout.splitlines() if x.startswith("RESULT ")]
    status, peak, active, retries, ooms = json.loads(line[0][7:]) if line else ["failed: " + (p.stderr.strip().splitlines() or ["?"])[-1][:150], "", "", "", ""]
    return [row["layout"], mode, limit, row["peak_reserved_bytes"], row["limit_bytes"], status, peak, active, retries, ooms]
tasks = [(r, m, l) for r in csv.DictReader(open(here + "/layouts.csv"))
         for m, l in (("free", 0), ("limit", int(r["limit_bytes"])), ("below", int(int(r["limit_bytes"]) * .98)))]
with open(sys.argv[1] + "/layouts-h100.csv", "w") as f, concurrent.futures.ThreadPoolExecutor(4) as pool:
    w = csv.writer(f)
    w.writerow("layout mode limit_bytes predicted_peak_bytes predicted_limit_bytes status peak_reserved_bytes peak_active_bytes retries ooms".split())
    for r in pool.map(one, tasks):
        w.writerow(r); f.flush(); print(*r, flush=True)
subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__, torch.cuda.get_device_properties(0))"])
