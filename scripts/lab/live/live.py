# SPDX-License-Identifier: Apache-2.0
"""The runs of scripts/lab/live.sh: live.py OUT PROGRAM [--full] [--seconds N]

Each run is a process of its own, which has imported everything before its turn. Every run appends a line to OUT/runs.jsonl when it ends, and its
samples to OUT/samples.csv, so that what is finished is there whenever this is stopped. Recordings and
predictions (PROGRAM is cufrag) go to OUT/predicted.jsonl and, for charts, OUT/series.csv.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
EXPANDABLE = "pytorch:expandable_segments:True"
# method: (setting of PyTorch's own allocator, or policy through the library, policy that predicts it)
METHODS = {
    "default": ("", None, "pytorch"), "expandable": ("expandable_segments:True", None, EXPANDABLE),
    "async": ("backend:cudaMallocAsync", None, "async"),
    "cufrag pytorch": (None, "pytorch", "pytorch"), "cufrag expandable": (None, EXPANDABLE, EXPANDABLE),
    "cufrag vmm": (None, "vmm", "vmm"), "cufrag gmlake": (None, "gmlake", "gmlake"),
    "cufrag tlsf": (None, "tlsf", "tlsf"), "cufrag rmm-pool": (None, "rmm-pool", "rmm-pool"),
}
BEGIN = time.monotonic()


class Nvml:
    """Memory in use on the card, as NVML says; without NVML None."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.card = ctypes.c_void_p()
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
            if not hasattr(self.lib, "nvmlDeviceGetMemoryInfo") or self.lib.nvmlInit_v2():
                self.lib = None
            elif self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.card)):
                self.lib = None
        except (OSError, AttributeError):
            self.lib = None

    def used(self):
        memory = self.Memory()
        if not self.lib or self.lib.nvmlDeviceGetMemoryInfo(self.card, ctypes.byref(memory)):
            return None
        return memory.used


def book(torch, ours):
    """(live, reserved, peak reserved, allocations, frees, retries, ooms, driver calls, driver ns)"""
    if ours:
        from cufrag import stats
        s = stats.read(ours.library(), 0)
        return (s.active_bytes[0].current, s.reserved_bytes[0].current, s.reserved_bytes[0].peak,
                s.allocation[0].allocated, s.allocation[0].freed, s.num_alloc_retries, s.num_ooms, s.driver_calls,
                s.driver_ns)
    s = torch.cuda.memory_stats()
    g = lambda key: s.get(key, 0)
    return (g("active_bytes.all.current"), g("reserved_bytes.all.current"), g("reserved_bytes.all.peak"),
            g("allocation.all.allocated"), g("allocation.all.freed"), g("num_alloc_retries"), g("num_ooms"),
            g("num_device_alloc") + g("num_device_free"), None)


class Sampler(threading.Thread):
    """Every `gap` seconds: time, events of the book, live, reserved, bytes in use by NVML."""

    def __init__(self, torch, ours, nvml, base, gap=0.02):
        super().__init__(daemon=True)
        self.torch, self.ours, self.nvml, self.base, self.gap = torch, ours, nvml, base, gap
        self.rows, self.peak, self.stop = [], 0, threading.Event()

    def sample(self):
        used = self.nvml.used()
        used = 0 if used is None or self.base is None else used - self.base
        self.peak = max(self.peak, used)
        b = book(self.torch, self.ours)
        self.rows.append((time.monotonic() - BEGIN, b[3] + b[4], b[0], b[1], used))

    def run(self):
        while not self.stop.wait(self.gap):
            self.sample()


def prepare(torch, job):
    """Puts the allocator of the job in; the package, where it is ours."""
    if os.environ.get("CUFRAG_RECORD"):  # a dry run on a pretended card: nothing is recorded but what we say
        torch.cuda._queued_calls.clear()
    if job["policy"]:
        import cufrag.torch as ours
        ours.use(job["policy"], limit=job.get("limit"))
        torch.cuda.init()
        return ours
    if job["conf"] and "backend" not in job["conf"]:
        getattr(torch._C, "_accelerator_setAllocatorSettings", torch.cuda.memory._set_allocator_settings)(job["conf"])
    torch.cuda.init()
    if job.get("limit"):
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((job["limit"] + 4096) / total)
    return None


def child(job, out):
    """One run, in a process of its own."""
    import torch
    import programs
    result = dict(job, losses=[], steps_s=[], oom=None, error=None, completed=False)
    sampler = None
    try:
        ours = prepare(torch, job)
        torch.empty(0, device="cuda")
        torch.cuda.synchronize()
        nvml = Nvml()
        if job.get("record"):
            torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=5_000_000)
        sampler = Sampler(torch, ours, nvml, nvml.used())
        if not job.get("record"):
            sampler.start()
        try:
            run = programs.begin(job["program"], job["steps"])
            while True:
                torch.cuda.synchronize()
                began = time.perf_counter()
                value = next(run)
                torch.cuda.synchronize()
                result["steps_s"].append(round(time.perf_counter() - began, 6))
                result["losses"].append(float(value).hex())
        except StopIteration:
            result["completed"] = True
        except torch.OutOfMemoryError as error:
            result["oom"] = str(error)[:400]
        torch.cuda.synchronize()
        if job.get("record"):
            torch.cuda.memory._dump_snapshot(job["record"])
        sampler.stop.set()
        sampler.sample()
        result.update(zip(("live", "reserved", "peak_reserved", "allocations", "frees", "retries", "ooms",
                           "driver_calls", "driver_ns"), book(torch, ours)))
        if ours:
            from cufrag import stats
            result["calls"] = {k: v["count"] for k, v in stats.calls(ours.library(), 0).items() if v["count"]}
        result["peak_nvml"] = sampler.peak or None
    except Exception as error:  # pylint: disable=broad-except
        result["error"] = "%s: %s" % (type(error).__name__, str(error)[:400])
    with open(os.path.join(out, "runs.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    if sampler and sampler.rows and job["part"] == "timed":
        with open(os.path.join(out, "samples.csv"), "a", encoding="utf-8") as file:
            for row in sampler.rows:
                file.write("%s,%s,%.3f,%d,%d,%d,%d\n" % ((job["program"], job["method"]) + row))


MODULES = ("transformers.models.llama.modeling_llama", "transformers.models.gpt2.modeling_gpt2", "timm", "peft",
           "torch_geometric.nn")


def worker(out):
    """Imports everything, then does the one job that comes on standard input."""
    import torch  # noqa: F401
    import programs  # noqa: F401
    for module in MODULES:
        try:
            __import__(module)
        except ImportError as error:
            print("without %s: %s" % (module, error))
    print("ready: %.1f s" % (time.monotonic() - BEGIN), flush=True)
    text = sys.stdin.readline()
    if text:
        child(json.loads(text), out)
    sys.stdout.flush()
    os._exit(0)


class Runs:
    """
    Runs jobs, so many at once, each with a limit of time, all within the seconds that are left. Each is a process that
    has imported what it needs before its job comes. Forks of one process cannot be: what Hugging Face imports starts CUDA.
    """

    def __init__(self, out, seconds, ready):
        self.out, self.seconds, self.waiting = out, seconds, []
        for _ in range(ready):
            self.prepare()

    def prepare(self):
        with open(os.path.join(self.out, "log.txt"), "a", encoding="utf-8") as log:
            self.waiting.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), self.out, "", "--worker"], stdin=subprocess.PIPE,
                                                 stdout=log, stderr=log, text=True, start_new_session=True))

    def left(self):
        return self.seconds - (time.monotonic() - BEGIN)

    def start(self, job):
        if not self.waiting:
            self.prepare()
        taken = self.waiting.pop(0)
        if self.left() > 40:
            self.prepare()
        taken.stdin.write(json.dumps(job) + "\n")
        taken.stdin.close()
        return taken

    def end(self):
        for unused in self.waiting:
            unused.stdin.close()
            unused.kill()

    def all(self, jobs, at_once=1, each=45, meanwhile=None):
        waiting, running = list(jobs), {}
        while waiting or running:
            while waiting and len(running) < at_once and self.left() > 3:
                job = waiting.pop(0)
                running[self.start(job)] = (job, time.monotonic())
            if not running:
                break
            if meanwhile:
                meanwhile()
                meanwhile = None
            for taken, (job, began) in list(running.items()):
                if taken.poll() is not None:
                    del running[taken]
                    print("%6.1f s  %-7s %-7s %-18s %4.1f s" % (time.monotonic() - BEGIN, job["part"], job["program"],
                                                                job["method"], time.monotonic() - began), flush=True)
                elif time.monotonic() - began > min(each, max(self.left(), 1)):
                    taken.kill()
                    taken.wait()
                    print("stopped: %s %s after %.0f s" % (job["program"], job["method"], time.monotonic() - began))
            time.sleep(0.01)
        for job in waiting:
            print("no time for %s %s %s" % (job["part"], job["program"], job["method"]))


def job(part, program, method, steps, **more):
    conf, policy, _ = METHODS[method]
    return dict(part=part, program=program, method=method, conf=conf, policy=policy, steps=steps, **more)


# ---- predictions ------------------------------------------------------------------------------

class Predictions:
    def __init__(self, cufrag, out):
        self.cufrag, self.out, self.pool = cufrag, out, concurrent.futures.ThreadPoolExecutor(8)

    def run(self, *arguments):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CUFRAG_")}
        done = subprocess.run([self.cufrag, *arguments], env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    def cft(self, program):
        return os.path.join(self.out, "recordings", program + ".cft")

    def take(self, program):
        self.run("import", self.cft(program) + ".pickle", "-o", self.cft(program))
        return os.path.exists(self.cft(program))

    def note(self, **row):
        with open(os.path.join(self.out, "predicted.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def replay(self, program, policy, limit=None):
        more = ["--limit", str(limit)] if limit else []
        text = self.run("replay", self.cft(program), "--policy", policy, "--no-host", "--json", "-", *more)
        try:
            r = json.loads(text)["results"][0]
        except (ValueError, KeyError, IndexError):
            return self.note(program=program, policy=policy, limit=limit, error=True)
        return self.note(program=program, policy=policy, limit=limit, completed=r["completed"],
                         peak_reserved=r["peak_reserved_bytes"], live=r["lower_bound_bytes"],
                         allocations=r["allocs_count"], retries=r["retries_count"],
                         driver_calls=r["driver_calls_count"], driver_ns=r["modelled_ns"])

    def smallest(self, program, policy):
        """The least that may be reserved: what fit names, without the CUDA context."""
        text = self.run("fit", self.cft(program), "--policy", policy, "--json", "-")
        try:
            found = json.loads(text)
            return found["results"][0]["min_capacity_bytes"] - found["context_bytes"]
        except (ValueError, KeyError, IndexError, TypeError):
            return None

    def series(self, program, policies):
        """Reserved and live bytes over the events, for the charts."""
        folder = os.path.join(self.out, "recordings", program + ".report")
        self.run("compare", self.cft(program), "--policies", ";".join(policies), "--optimum", "off", "--no-host",
                 "--formats", "svg", "--out", folder)
        try:
            lines = open(os.path.join(folder, "memory.csv"), encoding="utf-8").read().splitlines()
        except OSError:
            return
        at = {name: i for i, name in enumerate(lines[0].split(","))}
        with open(os.path.join(self.out, "series.csv"), "a", encoding="utf-8") as file:
            for line in lines[1:]:
                v = line.split(",")
                file.write(",".join((program, v[at["policy"]], v[at["event"]], v[at["active_max_bytes"]],
                                     v[at["reserved_max_bytes"]])) + "\n")


def fit_jobs(predictions, program, steps):
    """At the smallest limit under which it completes, and 2 % below it. A limit is not quite a smaller card:
    PyTorch compares whole segments with it before it asks the driver."""
    jobs = []
    for method in ("default", "expandable", "cufrag pytorch", "cufrag vmm"):
        policy = METHODS[method][2]
        least = predictions.smallest(program, policy)
        for _ in range(30):
            if not least or predictions.replay(program, policy, least).get("completed"):
                break
            least = least * 1005 // 1000 >> 21 << 21
        if not least:
            continue
        less = least * 98 // 100 >> 21 << 21
        predictions.replay(program, policy, less)
        jobs += [job("fit", program, method, steps, limit=limit) for limit in (least, less)]
    return jobs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("cufrag")
    parser.add_argument("--full", action="store_true", help="every program under every method, all steps")
    parser.add_argument("--seconds", type=float, default=285)
    parser.add_argument("--programs", help="only these, separated by commas")
    parser.add_argument("--ready", type=int, default=min(12, os.cpu_count() or 1), help="processes that wait for a job")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--async-only", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    out = os.path.abspath(o.out)
    os.makedirs(os.path.join(out, "recordings"), exist_ok=True)
    sys.path[:0] = [HERE, os.path.join(ROOT, "src", "inside", "python")]
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ["CUFRAG_TORCH_LIBRARY"] = os.environ.get("CUFRAG_TORCH_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(o.cufrag)), "libcufrag_torch.so")
    if o.worker:
        worker(out)
    import torch
    import programs
    print("%6.1f s  torch %s" % (time.monotonic() - BEGIN, torch.__version__), flush=True)
    models = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.environ["LIVE_MODELS"] = models.name
    runs, predictions = Runs(out, o.seconds, o.ready), Predictions(os.path.abspath(o.cufrag), out)
    names = o.programs.split(",") if o.programs else list(programs.STEPS)
    steps = {n: programs.STEPS[n][o.full] for n in names}
    if o.async_only:
        runs.all([job("timed", n, "async", steps[n]) for n in names])
        return
    every = ["default", "cufrag vmm", "cufrag pytorch", "expandable", "cufrag expandable", "cufrag tlsf",
             "cufrag gmlake", "cufrag rmm-pool"]
    policies = sorted({METHODS[m][2] for m in every} | {"async"})
    futures, fits = [], {}

    def record(some):
        runs.all([job("record", n, "default", steps[n], record=predictions.cft(n) + ".pickle") for n in some], 3, 60)
        for n in [n for n in some if predictions.take(n)]:
            if n in ("gnn", "varlen", "serve"):
                fits[n] = predictions.pool.submit(fit_jobs, predictions, n, steps[n])
                futures.append(predictions.pool.submit(predictions.series, n, policies))
            futures.extend(predictions.pool.submit(predictions.replay, n, p) for p in policies)

    def timed(n, methods, meanwhile=None):
        runs.all([job("timed", n, m, steps[n]) for m in methods], meanwhile=meanwhile)

    # one short run of each way first, so that a fault shows early; the large models are built beside them
    runs.all([job("smoke", names[0], m, 3) for m in ("default", "cufrag vmm", "cufrag pytorch")], 3,
             meanwhile=lambda: programs.build(names))
    record(names)
    for n in names:
        some = every if o.full or n in ("gnn", "varlen") else every[:3 if n in ("lora", "hf") else 4]
        timed(n, some)
        if n == "gnn":
            runs.all([job("timed", n, "default", steps[n], again=True)])
        if n in fits:
            runs.all(fits[n].result(), 4, 60)
        if n == "varlen":
            asynchronous(o, names, runs.left())
    runs.end()
    concurrent.futures.wait(futures, timeout=max(runs.left(), 5))


def asynchronous(o, names, left):
    """The backend is chosen when the library is loaded: a process of its own imports PyTorch again."""
    environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    subset = names if o.full else [n for n in names if n in ("gnn", "varlen", "serve")]
    subprocess.run([sys.executable, os.path.abspath(__file__), o.out, o.cufrag, "--async-only", "--seconds",
                    str(min(left, 600 if o.full else 40)), "--programs", ",".join(subset)]
                   + (["--full"] if o.full else []), env=environment, check=False)


if __name__ == "__main__":
    main()
