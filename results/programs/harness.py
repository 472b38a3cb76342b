#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this folder, one for each mechanism, and compares their peaks.

    harness.py list [NAME...]                     name, mechanism, ranks, needs, measured rows
    harness.py NAME                               one program, in this process
    torchrun --nproc-per-node N harness.py NAME   one of several ranks
    harness.py all OUT.csv [--record "COMMAND"] [--ranks] [NAME...]

A file's name (language, ops, ...) stands for all programs in it. A program prints a line
RESULT [rank, requests, requested bytes, peaks of requested, allocated and reserved bytes, retries,
"ok"]END from each rank. Where it lacks a package, it says skipped and ends with status 77. With
TIMES=N in the environment most train for N times as many steps. arrays.py has those without
PyTorch.

"all" runs one after another, each in a process of its own with LIMIT seconds (300), and writes a
row for each rank: on this machine's cards, or with COMMAND before it, such as
"cufrag record --no-gpu --gpu h200 -o run.cft". Jobs of several ranks run only with --ranks. Each
is then compared with the CSV files of ../pretend: with what a card measured, and with what cufrag
computed when that file was written.
"""
import ast
import collections
import csv
import glob
import importlib
import importlib.metadata
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = "language vision audio graphs rl ops ranks".split()
PEAKS = ("peak_requested", "peak_allocated", "peak_reserved")
H100 = ("kinds.csv", "jobs_h100.csv")  # the other files were measured on an H200
Program = collections.namedtuple("Program", "file mechanism packages torch conf ranks",
                                 defaults=("2.6", None, 0))
sys.path.insert(0, HERE)


def programs(names=()):
    """{name: program} of the files and programs with these names, or of all.

    Read from the source text: without a card, PyTorch may load only below cufrag.
    """
    found = {}
    for file in FILES:
        with open(os.path.join(HERE, file + ".py")) as f:
            functions = ast.parse(f.read()).body
        for f in functions:
            if not (isinstance(f, ast.FunctionDef) and f.decorator_list):
                continue
            call = f.decorator_list[0]
            mechanism, *packages = map(ast.literal_eval, call.args)
            needs = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
            found[f.name] = Program(file, mechanism, packages, **needs)
    unknown = set(names) - set(FILES) - set(found)
    if unknown:
        sys.exit("no such program: " + " ".join(sorted(unknown)))
    return {n: p for n, p in found.items() if not names or n in names or p.file in names}


def lacks(program):
    """What this environment lacks for a program, or an empty string."""
    numbers = lambda text: [int(n) for n in text.split("+")[0].split(".")[:2]]
    if numbers(importlib.metadata.version("torch")) < numbers(program.torch):
        return "PyTorch " + program.torch
    return " ".join(p for p in program.packages if importlib.util.find_spec(p) is None)


def measured(name):
    """Rows of the CSV files for a program: (file, rank, card's peaks, cufrag's peaks)."""
    rows = []
    for path in sorted(glob.glob(os.path.join(HERE, "../pretend/*.csv"))):
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                if name not in (row.get("program"), row.get("job")):
                    continue
                if "peak_reserved_card" in row:
                    card, own = ([int(row[k + end]) for k in PEAKS] for end in ("_card", ""))
                elif "card_reserved" in row:
                    keys = [k.removeprefix("peak_") for k in PEAKS]
                    card, own = ([int(row[start + k]) for k in keys] for start in ("card_", ""))
                else:
                    continue
                rows.append((os.path.basename(path), int(row.get("rank") or 0), card, own))
    return rows


def one(name):
    """Runs a program in this process and prints its line."""
    program = programs()[name]
    missing = lacks(program)
    if missing:
        print("skipped %s: needs %s" % (name, missing))
        sys.exit(77)
    if program.conf is not None and os.environ.get("PYTORCH_CUDA_ALLOC_CONF") != program.conf:
        # PyTorch reads these settings when it is imported
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = program.conf
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), name])
    import numpy
    import torch
    for seed in (torch.manual_seed, numpy.random.seed, random.seed):
        seed(0)
    rank, answer = int(os.environ.get("RANK", 0)), "ok"
    try:
        if program.ranks:
            import ranks
            ranks.begin(name)
        torch.cuda.init()
        getattr(importlib.import_module(program.file), name)()
        torch.cuda.synchronize()
    except BaseException as e:
        traceback.print_exc()
        answer = repr(e)[:150]
    s = torch.cuda.memory_stats()
    keys = ("allocation.all.allocated", "requested_bytes.all.allocated", "requested_bytes.all.peak",
            "allocated_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries")
    line = json.dumps([rank] + [s.get(k, 0) for k in keys] + [answer])
    sys.stdout.write("RESULT " + line + "END\n")
    sys.stdout.flush()
    sys.stderr.flush()
    if program.ranks:
        ranks.end(answer)


def started(name, program, record):
    """Runs a program in a process of its own: the rows of its ranks, or what it said last."""
    command = record + [sys.executable]
    if program.ranks:
        n = str(program.ranks)
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", n]
        if record:
            command[len(record) - 1:len(record) - 1] = ["--gpus", n]
    try:
        p = subprocess.run(command + [os.path.abspath(__file__), name], capture_output=True,
                           text=True, timeout=float(os.environ.get("LIMIT", 300)))
    except subprocess.TimeoutExpired:
        return [], "did not end"
    found = [t.split("END")[0] for t in p.stdout.split("RESULT ")[1:]]
    return sorted(json.loads(t) for t in found), (p.stdout + p.stderr).strip()[-300:]


def compare(name, rows):
    """Prints for each rank how far its peaks are from a card's and from cufrag's earlier ones."""
    known = measured(name)
    for row in rows:
        same = [k for k in known if k[1] == row[0]]
        if not same:
            print("  no measured row")
        for file, _, card, own in same:
            print("  rank %d, %s: card %s; cufrag %s" % (
                row[0], file, *(", ".join("%+.2f %%" % (100 * (a / b - 1)) if a != b else "equal"
                                          for a, b in zip(row[3:6], k)) for k in (card, own))))


def every(out, *arguments):
    words, record, jobs = list(arguments), [], "--ranks" in arguments
    if "--record" in words:
        at = words.index("--record")
        record = words[at + 1].split() + ["--"]
        del words[at:at + 2]
    with open(out, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(("program", "rank", "requests", "requested_bytes", *PEAKS, "retries", "seconds"))
        for name, program in programs([x for x in words if x != "--ranks"]).items():
            missing = lacks(program) or ("--ranks" if program.ranks and not jobs else "")
            if missing:
                print("skipped %s: needs %s" % (name, missing), flush=True)
                continue
            start = time.time()
            rows, said = started(name, program, record)
            seconds = round(time.time() - start, 1)
            good = rows and all(row[-1] == "ok" for row in rows)
            print("%s: %s, %s s" % (name, "ok" if good else said, seconds), flush=True)
            if good:
                w.writerows([name] + row[:-1] + [seconds] for row in rows)
                f.flush()
                compare(name, rows)


def show(*names):
    for name, p in programs(names).items():
        files = sorted({file + " (H100)" * (file in H100) for file, *_ in measured(name)})
        print(name, p.mechanism, p.ranks or 1, " ".join(["torch>=" + p.torch, *p.packages]),
              ", ".join(files) or "-", sep="; ")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    what, *arguments = sys.argv[1:]
    {"all": every, "list": show}[what](*arguments) if what in ("all", "list") else one(what)
