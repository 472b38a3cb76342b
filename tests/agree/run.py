#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py PROGRAM [TRACE...]: do the commands agree about what completes?

Each recording (six bundled ones; every night, all of them) is replayed under each policy and limits
around its peak; what `replay` says is compared with what compare, explain, diagnose and tune say of
the same replay, and on cards of a list with what fit and fleet say. Sixty recordings go through
every command once: peak, limit, verdict, line and remedy are one, and printed as a table. Prints
every disagreement; the last line is "N passed, N failed, N skipped"."""
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


def explained(cufrag, trace, policy, limit):
    """The answer; None: there is no refusal to explain."""
    found = cufrag.json("explain", trace, "--policy", policy, "--limit", limit)
    return found if found["oom"] else None


def diagnosed(cufrag, trace, policy, limit):
    """({verdict: its numbers}, whether its gate is passed)"""
    done = cufrag.run("diagnose", trace, "--policy", policy, "--limit", limit, "--fail-on", "oom-needed,oom-fragmentation", "--json", "-")
    return {one["verdict"]: one["numbers"] for one in json.loads(done.stdout)["findings"]}, done.returncode == 0


def same_refusal(refusal, found, numbers):
    """What explain and diagnose say of a refusal: its figures, and its verdict."""
    oom = refusal["oom"]
    return (numbers["event"], numbers["live_bytes"]) == (refusal["event"], oom["live_bytes"]) and oom["verdict"] in found


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
    refusal, (found, passed) = (what(cufrag, trace, policy, limit) for what in (explained, diagnosed))
    ooms = [numbers for verdict, numbers in found.items() if verdict.startswith("oom")]
    yield "explain", refusal is None, completed
    yield "diagnose", (not ooms, passed), (completed, completed)
    if refusal and ooms and len(truth) == 1:
        yield "explain", same_refusal(refusal, found, ooms[0]), True
        yield "explain", refusal["peak_reserved_bytes"], truth[0][1]
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


SOME = ["--policies", "recorded;pytorch;pytorch:expandable_segments:True"]
COMMANDS = {"info": [], "summary": [], "verify": [], "explain": [], "diagnose": [], "view": [], "advise": ["--changes", "none"], "tune": ["--budget", 1], "fit": SOME,
            "compare": [*SOME, "--no-host", "--optimum", "off"], "diff": []}
if os.environ.get("PRETEND") == "0":
    del COMMANDS["advise"]
TABLE = 60  # recordings, the smallest
ROWS = []  # name, peak, limit, verdict, line, remedy


def peaks_agree(said, peaks, trace):
    """The recorded peak is that of the recorder where its figures lie beside the file, and the same
    in all commands (in advise without any change, which takes a tenth of the time)."""
    beside, explain, truth = trace.replace(".pickle.xz", ".json"), said["explain"], max(peaks)
    if beside != trace and not said["info"]["devices"][0]["initial_blocks_count"] and len(peaks) == 1:
        with open(beside, encoding="utf-8") as file:
            yield "info", peaks[0], json.load(file).get("stats", {}).get("reserved_bytes.all.peak", peaks[0])
    yield "summary", (said["summary"]["peak_reserved_bytes"], said["summary"]["peak_simulated"]), (truth, False)
    yield "summary", said["summary"]["peak_active_bytes"] >= explain["peak_live_bytes"] or bool(explain["oom"]), True
    yield "explain", explain["peak_reserved_bytes"], truth
    yield "diagnose", set(numbers_of(said["diagnose"], "peak_reserved_bytes")) <= set(peaks), True
    yield "view", [lane["peak_reserved_bytes"] for lane in said["view"]["lanes"]], peaks
    yield "diff", numbers_of(said["diff"], "peak_reserved_bytes"), [truth, truth]
    yield "tune", said["tune"]["recorded_peak_bytes"], truth
    yield "advise", said.get("advise", {}).get("recorded_peak_bytes", truth) in peaks, True
    for command in ("verify", "fit", "compare"):
        yield command, set(numbers_of(said[command], "recorded_peak_bytes")), set(peaks)


def limits_agree(said, limits):
    """What verify finds of a recording is what all say; where a limit is guessed, all guess the same."""
    for command in ("fit", "compare", "tune"):
        yield command, numbers_of(said[command], "recording"), numbers_of(said["info"], "recording")
    yield "verify", set(numbers_of(said["verify"], "limit_bytes")) <= set(limits), True
    yield "view", [lane["limit_bytes"] for lane in said["view"]["lanes"]], limits
    found = set(numbers_of(said["diagnose"], "limit_bytes"))
    yield "diagnose", not any(limits) or found <= set(limits), True
    yield "explain", not found or said["explain"]["limit_bytes"] in found, True
    yield "summary", set(numbers_of(said["summary"], "limit_bytes")) <= found, True


def verdicts_agree(said):
    """The worst finding is the verdict, in the same words and with the same line."""
    findings, summary, oom = said["diagnose"]["findings"], said["summary"], said["explain"]["oom"]
    worst = findings[0]
    yield "summary", (summary["verdict"], summary["text"]), (worst["verdict"], worst["text"])
    notes = {f"{one['verdict']}: {one['text']}" for one in findings if one["about"] != "all"}
    yield "view", {note["text"] for note in said["view"]["notes"]}, notes
    yield "explain", not oom or oom["verdict"] == worst["verdict"] or f"({oom['verdict']})" in worst["text"], True
    for line in [summary["line"], *([oom["line"]] if oom else [])]:
        yield "explain", line in worst["lines"] or not worst["lines"], True


def remedies_agree(said, peaks):
    """What a setting needs is the same everywhere, and told only where the recorded settings reserve what was recorded."""
    tune, fit, worst = said["tune"], said["fit"], said["diagnose"]["findings"][0]
    same = tune["baseline"]["peak_reserved_bytes"] == max(peaks)
    yield "tune", (tune["reproduced"], tune["pick"]["against_baseline_ratio"] is not None), (same, same)
    yield "fit", fit["advice"] is None or same or said["verify"]["verdict"] == "identical", True
    yield "diagnose", worst["numbers"].get("cured_peak_reserved_bytes") is None or same, True
    peak, live = said["summary"]["peak_reserved_bytes"], said["summary"]["peak_active_bytes"]
    yield "summary", said["summary"]["healthy"] and peak - live > max(64 << 20, peak / 10), False
    alone = len(peaks) == 1 and not any(numbers_of(said["info"], "refused_count") + numbers_of(said["info"], "limit_bytes"))
    need = {one["policy"]: one["peak_reserved_bytes"] for one in fit["results"]}
    for one in said["compare"]["results"] * alone:
        yield "compare", one["peak_reserved_bytes"], need.get(one["policy"], one["peak_reserved_bytes"])


def named_remedies(said, tune):
    """(command, policy, limits, peak that it says) of each remedy that a replay can try: it must end, with that peak."""
    limit = said["info"]["devices"][0]["recording"]["limit_bytes"]
    limits, advice = ["--limit", limit] if limit else [], said["fit"]["advice"]
    for one in said["diagnose"]["findings"]:
        named = re.search(r"with(out your)? (\S+) the same program needs", one["text"])
        if named:
            yield "diagnose", "pytorch" if named[1] else "pytorch:" + named[2], limits, one["numbers"]["cured_peak_reserved_bytes"]
    if tune["pick"]["completed"] and not tune["pick"]["refused_count"] and tune["reproduced"]:
        yield "tune", tune["pick"]["policy"], limits, tune["pick"]["peak_reserved_bytes"]
    if advice:
        yield "fit", advice["policy"], ["--gpu", advice["card"], "--limit", "1T"], advice["reserved_bytes"]
    for one in said["explain"]["oom"]["remedies"] if said["explain"]["oom"] else []:
        if one["served"] and one["events_count"] is None and one["card"]:
            yield "explain", one["text"].partition(", under ")[2] or said["explain"]["policy"], ["--gpu", one["card"], "--limit", "1T"], None
        elif one["served"] and one["events_count"] is None and one["text"].startswith("a limit of "):
            yield "explain", said["explain"]["policy"], ["--limit", one["bytes"]], None


def settings_agree(cufrag, trace, said):
    """Each remedy reaches the end; explain's setting is the one that tune takes, its card the one that fit names, and none
    that diagnose names needs less than tune's."""
    tune, fit = cufrag.json("tune", trace), cufrag.run("fit", trace).stdout.decode().split("answer: ")[1].split("\n")[0]
    pick = None if tune["pick"] == tune["baseline"] else tune["pick"]
    for command, policy, limits, peak in named_remedies(said, tune):
        truth = replayed(cufrag, trace, policy, *limits)
        yield command, (policy, peak is None or peak in [one for _, one, _ in truth]), (policy, all(ended for _, _, ended in truth))
        yield "tune", command != "diagnose" or tune["pick"]["peak_reserved_bytes"] <= peak or len(truth) > 1, True
    for one in said["explain"]["oom"]["remedies"] if said["explain"]["oom"] else []:
        conf = (one["line"] or "").rpartition("PYTORCH_CUDA_ALLOC_CONF=")[2] if one["text"] == "another allocator setting" else ""
        if conf and tune["reproduced"]:
            yield "explain", conf, pick and pick["conf"]
        if one["text"].startswith("a larger card: "):
            name = one["text"].split(": ")[1].split(" or more")[0].replace("no known card has", "no card of the list has")
            yield "explain", name if name in fit else fit, name


def table_of(cufrag, trace):
    """One recording, each command once."""
    said = {command: cufrag.json(command, *[trace] * (1 + (command == "diff")), *words) for command, words in COMMANDS.items()}
    peaks = numbers_of(said["info"]["devices"], "peak_reserved_bytes")
    limits = [one["recording"]["limit_bytes"] for one in said["info"]["devices"]]
    for cells in (peaks_agree(said, peaks, trace), limits_agree(said, limits), verdicts_agree(said), remedies_agree(said, peaks)):
        yield from cells
    if said["explain"]["oom"] or said["diagnose"]["findings"][0]["verdict"] == "fragmentation":
        yield from settings_agree(cufrag, trace, said)
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results.sqlite")
        cufrag.run("sweep", trace, "--policies", "recorded;pytorch", "-o", results)
        job = cufrag.json("fleet", results)["jobs"][0]
    yield "fleet", job["ended_out_of_memory"] or job["today"]["need_bytes"] == max(peaks), True
    summary, remedy = said["summary"], said["tune"]["pick"]["params"]
    ROWS.append((os.path.basename(trace), max(peaks), limits[0], summary["verdict"], summary["line"], remedy))


def cells_of(cufrag, task):
    """[what to print, or None] of one recording under one policy and limit; limit None: the cards."""
    trace, policy, limit, peaks = task
    if policy is None:
        cells = table_of(cufrag, trace)
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
    bundled, shared = glob.glob(f"{ROOT}/traces/*.cft"), sorted(glob.glob(f"{SHARED}/*/*.pickle.xz"), key=os.path.getsize)
    named = [one for one in shared if re.search(r"2\.1\.2\.(mix\.(split128|pow2list)|oom\.gc)\.|/diagnose/", one)]
    others = [one for one in shared if one not in named]
    table = bundled + named + others[:len(others) if NIGHTLY else max(0, TABLE - len(bundled + named))]
    tasks += [(trace, None, None, None) for trace in table]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for some in pool.map(lambda task: cells_of(cufrag, task), tasks):
            cells += some
    wrong = [text for text in cells if text]
    print(*(" | ".join(map(str, row)) for row in sorted(ROWS, key=str)), sep="\n")
    print(*wrong, f"{len(cells) - len(wrong)} passed, {len(wrong)} failed, {int(not shared)} skipped", sep="\n")
    return bool(wrong) or not cells


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
