#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py PROGRAM [TRACE...]: do the commands agree about what completes?

Each recording (six bundled ones; every night, all of them) is replayed under each policy and limits around its peak;
what `replay` says is compared with what compare, explain, diagnose and tune say of the same replay, and on cards of a list
with what fit and fleet say. The recorded peak is one in all commands. Prints every disagreement; the last line is
"N passed, N failed, N skipped"."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

POLICIES = ["pytorch", "pytorch:expandable_segments:True", "vmm", "buddy"]
NIGHTLY = bool(os.environ.get("FRAG_TEST_NIGHTLY"))
SHARES = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.05] if NIGHTLY else [0.7, 0.9, 0.98, 1.0]  # of the peak without a limit
PAGE = 2 << 20
CONTEXT = 512 << 20
BUNDLED = "gnn.default cudagraph.default mempool.default modelpar.default streams.default leak.frames"
SHARED = os.environ.get("SHARED_TRACES", "../shared/traces")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


class Cufrag:
    def __init__(self, program):
        self.program = program

    def run(self, *words):
        words = [self.program, *map(str, words), "--quiet"]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False)

    def json(self, *words):
        """The answer as a document; a command that gives none is an error of the caller."""
        done = self.run(*words, "--json", "-")
        if done.returncode not in (0, 1, 6) or not done.stdout:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.decode(errors='replace').strip()}")
        return json.loads(done.stdout)


def served(document):
    """[(every request served, peak reserved, ended)] per device: a run also ends if only those requests are refused that
    were refused in the recording, since its program went on without them."""
    return [(one["completed"] and not one["refused_again_count"], one["peak_reserved_bytes"], one["completed"])
            for one in document["results"]]


def replayed(cufrag, trace, policy, *limits):
    return served(cufrag.json("replay", trace, "--policy", policy, *limits))


def compared(cufrag, trace, policy, limit):
    return served(cufrag.json("compare", trace, "--policies", policy, "--limit", limit, "--no-host", "--optimum", "off"))


def explained(cufrag, trace, *words):
    """The answer; None: there is no refusal to explain."""
    done = cufrag.run("explain", trace, *words, "--at", "oom", "--json", "-")
    text = done.stderr.decode(errors="replace")
    if done.returncode == 0:
        found = json.loads(done.stdout)
        return found if found["oom"] else None
    if "no request was refused" in text or "was served" in text or "no refus" in text:
        return None
    raise RuntimeError(f"explain {trace} {words}: {text.strip()}")


def diagnosed(cufrag, trace, *words):
    """({verdict: its numbers}, whether its gate is passed)"""
    found = cufrag.json("diagnose", trace, *words)
    gates = cufrag.run("diagnose", trace, *words, "--fail-on", "oom-needed,oom-fragmentation")
    return {one["verdict"]: one["numbers"] for one in found["findings"]}, gates.returncode == 0


def same_refusal(refusal, found, numbers):
    """What explain and diagnose say of a refusal: its figures, and is it one of a leak?"""
    oom = refusal["oom"]
    return ((numbers["event"], numbers["live_bytes"]) == (refusal["event"], oom["live_bytes"]) and oom["verdict"] in found and
            (oom["verdict"] == "leak") == ("leak" in found) and refusal["peak_reserved_bytes"] >= refusal["reserved_bytes"])


def tuned(cufrag, trace, policy, limit):
    found = cufrag.json("tune", trace, "--baseline", policy, "--budget", 1, "--limit", limit)["baseline"]
    return found["completed"], found["peak_reserved_bytes"]


def limits_of(peak):
    return sorted({int(peak * share) // PAGE * PAGE for share in SHARES} - {0})


def cells_of_limit(cufrag, trace, policy, limit):
    """(command, what was said, what replay says)"""
    truth = replayed(cufrag, trace, policy, "--limit", limit)
    completed = all(one for one, _, _ in truth)
    for said, true in zip(compared(cufrag, trace, policy, limit), truth):
        yield "compare", said, true
    refusal, (found, passed) = (what(cufrag, trace, "--policy", policy, "--limit", limit) for what in (explained, diagnosed))
    ooms = [numbers for verdict, numbers in found.items() if verdict.startswith("oom")]
    yield "explain", refusal is None, completed
    yield "diagnose", (not ooms, passed), (completed, completed)
    if refusal and ooms and len(truth) == 1:
        yield "explain", same_refusal(refusal, found, ooms[0]), True
    for one in refusal["oom"]["remedies"] if refusal and policy != "vmm" else []:
        if one["text"].startswith("a limit of "):
            yield "explain", True, all(ended for _, _, ended in replayed(cufrag, trace, policy, "--limit", one["bytes"]))
    said, peak = tuned(cufrag, trace, policy, limit)
    yield "tune", said, all(ended for _, _, ended in truth)
    if completed:
        yield "tune", peak, max(peak for _, peak, _ in truth)


def cells_of_cards(cufrag, trace, policy, peaks):
    """On cards of a list: what fit calls tight completes, what it calls room is what fleet calls room."""
    sizes = [limit + CONTEXT for limit in limits_of(max(peaks))]
    with tempfile.TemporaryDirectory() as folder:
        cards, results = os.path.join(folder, "cards.csv"), os.path.join(folder, "results.sqlite")
        with open(cards, "w", encoding="ascii") as file:
            file.write("name,memory,context\n" + "".join(f"c{size},{size},{CONTEXT}\n" for size in sizes))
        fit = cufrag.json("fit", trace, "--policy", policy, "--cards", cards, "--margin", 0)
        answers = {card["total_bytes"]: card["answer"] for card in fit["gpus"]}
        if cufrag.run("sweep", trace, "--policies", policy, "-o", results).returncode:
            raise RuntimeError(f"sweep {trace} {policy}")
        jobs = cufrag.json("fleet", results, "--cards", cards, "--margin", 0)["jobs"]
    fits = set(jobs[0]["today"]["fits"])
    for size in sizes:
        truth = replayed(cufrag, trace, policy, "--capacity", size, "--context", CONTEXT, "--limit", "1T")
        yield "fit", answers[size] in ("fits", "tight"), all(completed for completed, _, _ in truth)
        yield "fleet", f"c{size}" in fits, answers[size] == "fits"


def numbers_of(document, key):
    """All that stand under this name, anywhere."""
    if isinstance(document, dict):
        return [v for k, v in document.items() if k == key and v is not None] + numbers_of(list(document.values()), key)
    return [v for one in document for v in numbers_of(one, key)] if isinstance(document, list) else []


def cells_of_remedies(cufrag, trace):
    """explain's setting is the one that tune takes, its card the one that fit names, and what it takes to the end gets there."""
    refusal, tune, fit = explained(cufrag, trace), cufrag.json("tune", trace), cufrag.run("fit", trace).stdout.decode()
    pick = None if tune["pick"] == tune["baseline"] else tune["pick"]
    for one in refusal["oom"]["remedies"] if refusal else []:
        export = (one["line"] or "").rpartition("PYTORCH_CUDA_ALLOC_CONF=")
        if export[1] and tune["reproduced"]:
            yield "explain", export[2], pick and pick["conf"]
        if export[1] and one["served"] and one["events_count"] is None:
            yield "explain", True, all(ended for _, _, ended in replayed(cufrag, trace, pick["policy"], "--limit", refusal["limit_bytes"]))
        if one["text"].startswith("a larger card: "):
            name = one["text"].split(": ")[1].split(" or more")[0].replace("no known card has", "no card of the list has")
            yield "explain", name if name in fit.split("answer: ")[1].split("\n")[0] else fit, name


def cells_of_recorded(cufrag, trace):
    """The recorded peak is that of the recorder where its figures lie beside the file, and the same in all commands."""
    info = cufrag.json("info", trace)
    peaks = numbers_of(info["devices"], "peak_reserved_bytes")
    beside, whole = trace.replace(".pickle.xz", ".json"), info["devices"][0]["initial_blocks_count"] == 0
    if beside != trace and whole and len(peaks) == 1:
        with open(beside, encoding="utf-8") as file:
            yield "info", peaks[0], json.load(file)["stats"]["reserved_bytes.all.peak"]
    truth = max(peaks)
    summary, explained_ = cufrag.json("summary", trace), cufrag.json("explain", trace, "--at", "peak")
    yield "summary", (summary["peak_reserved_bytes"], summary["peak_simulated"]), (truth, False)
    yield "summary", summary["peak_active_bytes"] >= explained_["peak_live_bytes"], True
    yield "explain", explained_["peak_reserved_bytes"], truth
    lost = summary["peak_reserved_bytes"] - summary["peak_active_bytes"]
    yield "summary", summary["healthy"] and lost > max(64 << 20, summary["peak_reserved_bytes"] / 10), False
    for peak in numbers_of(cufrag.json("diagnose", trace), "peak_reserved_bytes"):
        yield "diagnose", peak in peaks, True
    yield "diff", numbers_of(cufrag.json("diff", trace, trace), "peak_reserved_bytes"), [truth, truth]
    tune = cufrag.json("tune", trace, "--budget", 1)
    same = tune["baseline"]["peak_reserved_bytes"] == truth
    yield "tune", (tune["recorded_peak_bytes"], tune["reproduced"]), (truth, same)
    yield "tune", tune["pick"]["against_baseline_ratio"] is not None, same
    for command in ("fit", "compare"):
        found = cufrag.json(command, trace, "--policies", "recorded;pytorch")
        yield command, sorted(set(numbers_of(found, "recorded_peak_bytes"))), sorted(set(peaks))
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results.sqlite")
        cufrag.run("sweep", trace, "--policies", "recorded;pytorch", "-o", results)
        job = cufrag.json("fleet", results)["jobs"][0]
        if not job["ended_out_of_memory"]:
            yield "fleet", job["today"]["need_bytes"], truth


def cells_of(cufrag, task):
    """[what to print, or None] of one recording under one policy and limit; limit None: the cards."""
    trace, policy, limit, peaks = task
    if policy is None:
        cells = [*([] if "/diagnose/" in trace else cells_of_recorded(cufrag, trace)), *cells_of_remedies(cufrag, trace)]
    elif limit is None:
        cells = cells_of_cards(cufrag, trace, policy, peaks)
    else:
        cells = cells_of_limit(cufrag, trace, policy, limit)
    name = os.path.basename(trace)
    return [None if said == true else f"FAILED: {name} {policy} {limit or 'cards'}: {command} says {said}, replay {true}"
            for command, said, true in cells]


def main(program, *traces):
    cufrag = Cufrag(program)
    names = "*" if NIGHTLY else BUNDLED
    traces = traces or [path for name in names.split() for path in glob.glob(f"{ROOT}/traces/{name}.cft")]
    tasks, cells = [], []
    for trace in traces:
        for policy in POLICIES:
            peaks = [peak for _, peak, _ in replayed(cufrag, trace, policy)]
            tasks += [(trace, policy, limit, peaks) for limit in limits_of(max(peaks)) + [None]]
    shared = sorted(path for folder in ("versions", "torch", "diagnose") for path in glob.glob(f"{SHARED}/{folder}/*.pickle.xz"))
    shared = [one for one in shared if NIGHTLY or re.search(r"2\.1\.2\.(mix\.(split128|pow2list)|oom\.gc)\.|2\.11\.0\.oom\.|oom_", one)]
    tasks += [(trace, None, None, None) for trace in sorted(glob.glob(f"{ROOT}/traces/*.cft")) + shared]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for some in pool.map(lambda task: cells_of(cufrag, task), tasks):
            cells += some
    wrong = [text for text in cells if text]
    print(*wrong, f"{len(cells) - len(wrong)} passed, {len(wrong)} failed, {int(not shared)} skipped", sep="\n")
    return bool(wrong) or not cells


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
