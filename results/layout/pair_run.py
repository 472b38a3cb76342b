# SPDX-License-Identifier: Apache-2.0
"""Each layout of pair.csv with both ranks on one real card: without a limit, at the predicted limit of a process, 2 % below it.

    pair_run.py OUT.csv [AT_A_TIME]
"""
import concurrent.futures, csv, json, os, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
CONTEXT = 552402944  # which the smallest card of a layout has besides the memory of the process


def one(task):
    row, mode, limit = task
    program = row["line"].split("pair.py ")[1].split()
    try:
        p = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", here + "/pair.py", *program, "--limit", str(limit)],
                           capture_output=True, text=True, timeout=60)
        lines = [json.loads(t.split("END")[0]) for t in p.stdout.split("RESULT ")[1:]]
        fault = (p.stderr.strip().splitlines() or [""])[-1][:150]
    except subprocess.TimeoutExpired:
        lines, fault = [], "timeout"
    lines.sort()
    answer = "completes" if [l[1] for l in lines] == ["completes"] * 2 else "out of memory" if any(l[1] == "out of memory" for l in lines) else "failed: " + fault
    known = {l[0]: l[2:] for l in lines}
    return [row["layout"], mode, limit, row["peak_reserved_bytes"], answer] + [x for r in (0, 1) for x in known.get(r, [""] * 6)]


rows = list(csv.DictReader(open(here + "/pair.csv")))
tasks = [(r, m, int(l)) for m, s in (("limit", 1), ("below", 0.98), ("free", 0)) for r in rows for l in [(int(r["smallest_card_bytes"]) - CONTEXT) * s]]
ranks = "reserved requested_peak requests requested retries ooms".split()
with open(sys.argv[1], "w") as f, concurrent.futures.ThreadPoolExecutor(int((sys.argv + ["4"])[2])) as pool:
    w = csv.writer(f)
    w.writerow("layout mode limit_bytes predicted_bytes answer".split() + [c + str(r) for r in (0, 1) for c in ranks])
    for r in pool.map(one, tasks):
        w.writerow(r)
        f.flush()
