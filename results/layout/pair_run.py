# SPDX-License-Identifier: Apache-2.0
"""Each layout of pair.csv with both ranks on real cards: at the predicted limit of a process, 1 and 2 % above and 2 % below it, or without a limit.

    pair_run.py OUT.csv [SECONDS [MODE...]]      each rank on a card of its own, as many layouts at a time as there are pairs of cards; if there is only
                                                 one, four layouts share it. No layout begins after SECONDS. Modes: limit, below, free, above1, above2.
"""
import concurrent.futures, csv, json, os, queue, subprocess, sys, tempfile, time

here = os.path.dirname(os.path.abspath(__file__))
CONTEXT = 552402944  # which the smallest card of a layout has besides the memory of the process
started = time.time()


def end_of(ranks):
    """Waits for both ranks, at most 60 s; if one fails, the other gets 10 s. Returns whether both have ended."""
    end = time.time() + 60
    while any(p.poll() is None for p in ranks) and time.time() < end:
        if any(p.poll() for p in ranks):
            end = min(end, time.time() + 10)
        time.sleep(0.1)
    ended = all(p.poll() is not None for p in ranks)
    for p in ranks:
        p.kill()
        p.wait()
    return ended


def one(number, row, mode, limit):
    cards = pairs.get()
    program = [sys.executable, here + "/pair.py", *row["line"].split("pair.py ")[1].split(), "--limit", str(limit)]
    known = dict(os.environ, CUDA_VISIBLE_DEVICES=cards, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + number))
    with tempfile.TemporaryFile("w+") as f:
        ended = end_of([subprocess.Popen(program, env=dict(known, RANK=r, LOCAL_RANK=r), stdout=f, stderr=f) for r in "01"])
        f.seek(0)
        text = f.read()
    pairs.put(cards)
    lines = {l[0]: l[1:] for l in (json.loads(t.split("END")[0]) for t in text.split("RESULT ")[1:])}
    said = [l[0] for l in lines.values()]
    answer = "out of memory" if "out of memory" in said else "completes" if said == ["completes"] * 2 else "failed" if ended else "timeout"
    if answer == "failed":
        print(text, file=sys.stderr)
    return [row["layout"], mode, limit, row["peak_reserved_bytes"], answer] + [x for r in (0, 1) for x in lines.get(r, [""] * 7)[1:]]


cards = subprocess.run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.split()
pairs = queue.Queue()
for s in [",".join(cards[i:i + 2]) for i in range(0, len(cards) - 1, 2)] or cards * 4:
    pairs.put(s)
rows = list(csv.DictReader(open(here + "/pair.csv")))
share = {"limit": 1, "above1": 1.01, "above2": 1.02, "below": 0.98, "free": 0}
tasks = [(r, m, int((int(r["smallest_card_bytes"]) - CONTEXT) * share[m])) for m in sys.argv[3:] or ("limit", "below", "free") for r in rows]
ranks = "reserved requested_peak requests requested retries ooms".split()
seconds = int((sys.argv + ["3600"])[2])
with open(sys.argv[1], "w") as f, concurrent.futures.ThreadPoolExecutor(pairs.qsize()) as pool:
    w = csv.writer(f)
    w.writerow("layout mode limit_bytes predicted_bytes answer".split() + [c + str(r) for r in (0, 1) for c in ranks])
    for r in pool.map(lambda t: one(t[0], *t[1]) if time.time() - started < seconds else None, enumerate(tasks)):
        if r:
            w.writerow(r)
            f.flush()
