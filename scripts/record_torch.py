#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run any PyTorch program and keep the history of its GPU memory.

    python record_torch.py -o out.pickle train.py --lr 1e-4
    python record_torch.py -o out.pickle -m package.module args...
    torchrun --nproc-per-node 2 record_torch.py -o out.pickle train.py

Recording begins when the program first uses CUDA and ends when it ends, also by an exception, by
Ctrl-C or by out of memory. The program is not changed, and torch is not imported before it does so
itself: settings that it makes in os.environ still count. The file is what
torch.cuda.memory._dump_snapshot writes; `cufrag verify out.pickle` checks it, `cufrag compare
out.pickle` uses it. Beside it, out.pickle.meta.json says what it does not hold: the release, the
cards, the memory limit of the process. Needs PyTorch 2.1 or newer.
"""
import argparse
import builtins
import json
import os
import pickle
import re
import runpy
import signal
import sys
import time

CALLS = ("alloc", "free_requested", "oom")  # counted by PyTorch, too
RELEASES = ("segment_free", "segment_unmap")


def parse(argv):
    p = argparse.ArgumentParser(
        prog="record_torch.py", description=__doc__.split("\n")[0],
        usage="record_torch.py [-o FILE] [--frames] [--max-entries N] [-m] PROGRAM [ARGUMENT...]")
    p.add_argument("-o", "--output", default="memory.pickle", metavar="FILE",
                   help="where the history goes (default memory.pickle); with several "
                        "ranks, .rankN is put before the ending")
    p.add_argument("--frames", action="store_true",
                   help="also keep the Python stack of each allocation: larger and slower, "
                        "and tells who allocates")
    p.add_argument("--max-entries", type=int, default=10_000_000, metavar="N",
                   help="entries kept per device; the oldest are lost beyond (default 10,000,000)")
    p.add_argument("-m", dest="module", action="store_true",
                   help="PROGRAM is a module, as in python -m")
    p.add_argument("program", metavar="PROGRAM")
    p.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    return p.parse_args(argv)


def say(text):
    print("record_torch: " + text, file=sys.stderr, flush=True)


class Recorder:
    """Waits for the program to import torch, starts with its first use of CUDA, writes once."""

    def __init__(self, options):
        self.options = options
        self.torch = None
        self.started = False
        self.fractions = {}  # by device, from the beginning on
        self.limits = {}  # all of them; after the first request they become entries
        self.called = {}  # calls of empty_cache, by device
        self.pid = os.getpid()
        self.original_import = builtins.__import__

    def watch_imports(self):
        def importing(name, *args, **kwargs):
            module = self.original_import(name, *args, **kwargs)
            self.arm()
            return module
        builtins.__import__ = importing

    def arm(self):
        torch = sys.modules.get("torch")
        if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
            return
        if not hasattr(getattr(torch, "cuda", None), "_lazy_call"):
            return
        builtins.__import__ = self.original_import
        self.torch = torch
        self.note_calls()
        torch.cuda._lazy_call(self.start)

    def note_calls(self):
        """The file has neither memory limits nor calls of empty_cache; a replay needs them."""
        binding = getattr(self.torch, "_C", None)

        def hook(name, instead):
            original = getattr(binding, name, None)
            if original:  # not in a PyTorch without CUDA
                setattr(binding, name, lambda *given, **named: instead(original, *given, **named))
        hook("_cuda_setMemoryFraction", self.set_fraction)
        hook("_cuda_emptyCache", self.empty_cache)
        hook("_accelerator_emptyCache", self.empty_cache)

    def set_fraction(self, original, fraction, device):
        done, now = original(fraction, device), time.time_ns() // 1000
        total = self.torch.cuda.get_device_properties(device).total_memory
        entry = {"action": "limit", "addr": 0, "stream": 0, "time_us": now,
                 "size": max(int(fraction * total), 1) if fraction < 1 else 0}
        at = self.counts()[device][0] if self.torch.cuda.is_initialized() else 0
        self.limits.setdefault(device, []).append((at, entry, 0))
        self.fractions[device] = 1.0 if at else float(fraction)
        return done

    def counts(self):
        """By device: entries of CALLS so far, and bytes that were returned to the driver."""
        if not self.torch.cuda.is_initialized():
            return []
        devices = range(self.torch.cuda.device_count())
        all_stats = [self.torch._C._cuda_memoryStats(d) for d in devices]
        served = [s["allocation"]["all"] for s in all_stats]
        return [(n["allocated"] + n["freed"] + s["num_ooms"], s["reserved_bytes"]["all"]["freed"])
                for s, n in zip(all_stats, served)]

    def empty_cache(self, original, *given, **named):
        before, now = self.counts(), time.time_ns() // 1000
        done = original(*given, **named)
        for device, (old, new) in enumerate(zip(before, self.counts())):
            size = new[1] - old[1]
            entry = {"action": "empty_cache", "addr": 0, "size": size, "stream": 0, "time_us": now}
            self.called.setdefault(device, []).append((old[0], entry, size))
        return done

    def with_called(self, trace, called, at):
        """The entries, the first after `at` of CALLS, with empty_cache before what it returned."""
        left = 0  # bytes that the last one returned
        called = [e for e in called if e[0] >= at or e[1]["action"] == "limit"]
        for entry in trace:
            call, release = entry["action"] in CALLS, entry["action"] in RELEASES
            left = 0 if call else left
            while called and left <= 0 and called[0][0] <= at and (
                    call or release or not called[0][2]):
                _, one, left = called.pop(0)
                yield one
            left -= entry["size"] if release else 0
            at += call
            yield entry
        for _, entry, _ in called:
            yield entry

    def dump(self, path):
        memory = self.torch.cuda.memory
        for device, limits in self.limits.items():
            if limits[-1][0]:
                calls = self.called.get(device, []) + limits
                self.called[device] = sorted(calls, key=lambda e: (e[0], e[1]["time_us"]))
        if not self.called:
            return memory._dump_snapshot(path)
        counts, snapshot = self.counts(), memory._snapshot()
        for device, trace in enumerate(snapshot["device_traces"]):
            if device in self.called:
                if not any(entry.get("time_us") for entry in trace):  # PyTorch 2.1
                    for _, entry, _ in self.called[device]:
                        del entry["time_us"]
                begun = counts[device][0] - sum(entry["action"] in CALLS for entry in trace)
                trace[:] = list(self.with_called(trace, self.called[device], begun))
        with open(path, "wb") as f:
            pickle.dump(snapshot, f)

    def beside(self, device):
        """Bytes of this process on the card beside its allocator, by NVML; None: not known."""
        try:
            told = self.torch.cuda.list_gpu_processes(device)
            lines = re.findall(r"process +(\d+) uses +([\d.]+) MB", told)
            mine = [float(mib) for pid, mib in lines if int(pid) == os.getpid()]
            # in a container numbers differ; a process that is alone is this one
            mine = mine or ([float(lines[0][1])] if len(lines) == 1 else [])
            own = self.torch.cuda.memory_reserved(device)
            return max(int(mine[0] * 2**20) - own, 0) if mine else None
        except Exception:  # no NVML, no rights, a card in an error state
            return None

    def card(self, device):
        properties = self.torch.cuda.get_device_properties(device)
        return {"ordinal": device, "name": properties.name, "total_bytes": properties.total_memory,
                "limit_fraction": self.fractions.get(device, 1.0),
                "beside_bytes": self.beside(device)}

    def describe(self, path):
        """What the snapshot does not hold, into a file beside it.

        A card in an error state must not cost the snapshot."""
        try:
            cuda = self.torch.cuda
            used = [d for d in range(cuda.device_count()) if d in self.limits or
                    cuda.memory_stats(d).get("reserved_bytes.all.peak", 0)]
            meta = {"cufrag_meta": 1, "torch": str(self.torch.__version__),
                    "devices": [self.card(d) for d in used]}
            with open(path + ".tmp", "w", encoding="ascii") as f:
                json.dump(meta, f, indent=1)
            os.replace(path + ".tmp", path)
        except Exception as e:
            say("no %s: %s" % (path, e))

    def start(self):
        self.torch.cuda.memory._record_memory_history(
            enabled="all", context="all" if self.options.frames else None, stacks="python",
            max_entries=self.options.max_entries)
        self.started = True

    def path(self):
        if int(os.environ.get("WORLD_SIZE", "1")) < 2:
            return self.options.output
        stem, ending = os.path.splitext(self.options.output)
        return "%s.rank%s%s" % (stem, os.environ.get("RANK", "0"), ending)

    def finish(self):
        builtins.__import__ = self.original_import
        if os.getpid() != self.pid:
            return  # a child that the program forked
        if not self.started:
            say("the program did not use CUDA through torch: nothing recorded")
            return
        path = self.path()
        # beside, then renamed: the file is complete or absent
        self.dump(path + ".tmp")
        os.replace(path + ".tmp", path)
        self.describe(path + ".meta.json")
        say("wrote %s (%.1f MB); next: cufrag verify %s" %
            (path, os.path.getsize(path) / 1e6, path))


def stop(number, frame):
    raise SystemExit(128 + number)


def main():
    options = parse(sys.argv[1:])
    recorder = Recorder(options)
    sys.argv = [options.program] + options.arguments
    signal.signal(signal.SIGTERM, stop)
    recorder.watch_imports()
    try:
        if options.module:
            sys.path[0] = os.getcwd()
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(options.program))
            runpy.run_path(options.program, run_name="__main__")
    finally:
        recorder.finish()


if __name__ == "__main__":
    main()
