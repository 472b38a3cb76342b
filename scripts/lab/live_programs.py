#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody prepared, as they are, with policies as their allocator on a card:

    live_programs.py CUFRAG [--seconds N] [--at-once N] [--policies default,pytorch,vmm] [--only NAME,…] > programs.csv

Each of nogpu_programs.py under PyTorch's own allocator ("default") and by `cufrag run --policy …`, several at a time. A row: program,
policy, exit status, requests, peak bytes requested and reserved (PyTorch's statistics), last loss printed.
"""
import argparse
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nogpu_programs.py")
FIGURES = re.compile(r"requested_bytes.all.peak=(\d+) reserved_bytes.all.peak=(\d+) allocation.all.allocated=(\d+)")
lock = threading.Lock()


def run(o, folder, policy, name, seconds):
    """Caches of compiled kernels are each run's own: what they keep takes no memory the next time."""
    mine = os.path.join(folder, "%s.%s" % (policy.replace("/", "_"), name))
    command = [sys.executable, PROGRAMS, name, mine + ".pickle"]
    if policy != "default":
        command = [o.cufrag, "run", "--policy", policy, "--"] + command
    environment = dict(os.environ, TRITON_CACHE_DIR=mine + ".triton", TORCHINDUCTOR_CACHE_DIR=mine + ".inductor")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=max(1, seconds), check=False)
    except subprocess.TimeoutExpired:
        return
    if os.path.exists(mine + ".pickle"):
        os.remove(mine + ".pickle")
    figures, losses = FIGURES.search(done.stdout), re.findall(r"^loss (\S+)", done.stdout, re.M)
    requested, reserved, requests = figures.groups() if figures else ("", "", "")
    with lock:
        print(name, policy, done.returncode, requests, requested, reserved, losses[-1] if losses else "", sep=",", flush=True)
        if done.returncode:
            sys.stderr.write("%s %s: %s" % (policy, name, done.stderr[-2000:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cufrag")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--policies", default="default,pytorch,vmm")
    parser.add_argument("--only")
    o = parser.parse_args()
    until, jobs = time.monotonic() + o.seconds, queue.Queue()
    names = o.only.split(",") if o.only else subprocess.run([sys.executable, PROGRAMS, "list"], capture_output=True, text=True, check=True).stdout.split()
    for policy in o.policies.split(","):
        for name in names:
            jobs.put((policy, name))
    print("program,policy,exit,requests,peak_requested_bytes,peak_reserved_bytes,loss")

    def work(folder):
        while time.monotonic() < until - 10:
            try:
                run(o, folder, *jobs.get_nowait(), until - time.monotonic())
            except queue.Empty:
                return

    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=work, args=(folder,)) for _ in range(o.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
