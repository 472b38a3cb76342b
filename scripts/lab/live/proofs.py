# SPDX-License-Identifier: Apache-2.0
"""The runs of scripts/lab/live_proofs.sh: proofs.py OUT PROGRAM [--seconds N]

Processes that have imported what they need wait for lines on standard input and answer with lines; so runs under several allocators
can take turns step by step, and a slow moment of the host hits all of them. Every result is appended to OUT/proofs.jsonl as it comes.
"""
import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [HERE, os.path.join(ROOT, "src", "inside", "python")]
import live  # noqa: E402

GIB = 1 << 30
# steps of a turn and most turns: chance is within one in a hundred only where many are compared
TURN = {"gnn": (3, 150), "hf": (2, 60), "varlen": (1, 60), "serve": (1, 40), "lora": (2, 30), "vision": (1, 120)}
# of the time for steps, in which each program has so many parts: growth is to end
PARTS = {"gnn": 7, "hf": 8}
# `vmm` saves time for the driver while others have their turn, so what it spends is also taken alone, for so many seconds
ALONE = {"gnn": 12, "hf": 15}
TURNS = ("default", "cufrag pytorch", "cufrag vmm", "default again")
TWICE = TURNS[:3] + tuple(name + " again" for name in TURNS[:3])
ROOM = {"varlen"}  # too large for all of TWICE at once
OTHERS = ("expandable", "cufrag expandable", "cufrag tlsf", "cufrag gmlake", "cufrag rmm-pool", "async")
EXPANDABLE = live.EXPANDABLE
NEEDED = {"gnn": live.MODULES[4:], "hf": live.MODULES[1:2], "varlen": live.MODULES[:1], "serve": live.MODULES[:1], "vision": live.MODULES[2:3],
          "lora": (live.MODULES[0], live.MODULES[3])}
# policy of a storm, whether it is held below a limit of its own
STORMS = ["vmm", "vmm", "pytorch", EXPANDABLE, "pytorch:max_split_size_mb:64", "gmlake", "tlsf", "rmm-pool", "bfc", "async",
          "buddy", "native", "vmm", "vmm"]
STORM_LIMIT, STORM_LIVE = 5 * GIB, 5 * GIB // 2
FAULTS = [(policy, every) for policy in ("vmm", "pytorch") for every in (3, 7, 50)]


def left(o):
    return o.seconds - (time.monotonic() - live.BEGIN)


# ---- in the processes -------------------------------------------------------------------------

def job_of(method, **more):
    name = method.replace(" again", "")
    conf, policy, _ = live.METHODS.get(name, (None, name.replace("cufrag ", ""), None))
    return dict(conf=conf, policy=policy, method=method, **more)


class Process:
    """Answers one line with one line."""

    def __init__(self, out):
        self.out, self.run, self.storm, self.ours, self.torch = out, None, None, None, None

    def load(self, m):
        if m.get("cores"):
            os.sched_setaffinity(0, m["cores"])
        import torch
        self.torch = torch
        if m.get("heavy"):
            import programs  # noqa: F401
            for module in NEEDED.get(m["heavy"], live.MODULES):
                try:
                    __import__(module)
                except ImportError as error:
                    print("without %s: %s" % (module, error))
        return {}

    def begin(self, m):
        torch = self.torch
        self.ours = live.prepare(torch, m["job"])
        torch.empty(0, device="cuda")
        if m["job"].get("record"):
            torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=5_000_000)
        if m["job"].get("program"):
            import programs
            self.run = programs.begin(m["job"]["program"], m["job"]["steps"])
            if m["job"].get("threads"):
                torch.set_num_threads(m["job"]["threads"])
        torch.cuda.synchronize()
        return {}

    def book(self):
        return dict(zip(("live", "reserved", "peak_reserved", "allocations", "frees", "retries", "ooms", "driver_calls", "driver_ns"),
                        live.book(self.torch, self.ours)))

    def step(self, m):
        """Some steps: the time of each without that of drawing its data, and the driver's of all."""
        import programs
        torch, steps = self.torch, []
        before, start = self.book()["driver_ns"], time.perf_counter()
        for _ in range(m.get("steps", 1)):
            torch.cuda.synchronize()
            began, cpu = time.perf_counter() - programs.drawn_s, time.process_time() - programs.drawn_cpu_s
            value = next(self.run)
            torch.cuda.synchronize()
            seconds, cpu = time.perf_counter() - programs.drawn_s - began, time.process_time() - programs.drawn_cpu_s - cpu
            steps.append(dict(s=seconds, cpu=cpu, loss=float(value).hex()))
        wall, book = time.perf_counter() - start, self.book()
        return dict(steps=steps, wall=wall, turn_ns=None if before is None else book["driver_ns"] - before, loss=steps[-1]["loss"], **book)

    def end(self, m):
        if m.get("record"):
            self.torch.cuda.memory._dump_snapshot(m["record"])
        result = self.book()
        if self.ours:
            from cufrag import stats
            result["calls"] = {k: v for k, v in stats.calls(self.ours.library(), 0).items() if v["count"]}
        return result

    def pairs(self, m):
        """ns per torch.empty and del: one size that fits a small pool, one of 1 MiB, and 64 sizes of which 32 are live."""
        import random
        torch, count, found = self.torch, m["count"], {}
        empty, device, now = torch.empty, torch.device("cuda"), time.perf_counter_ns
        for name, size in (("512 B", 128), ("1 MiB", 262144), ("4 MiB", 1048576)):
            began = now()
            for _ in range(count):
                x = empty(size, device=device)
                del x
            found[name] = (now() - began) / count
        rng = random.Random(1)
        sizes, ring = [int(128 * 2 ** (14 * rng.random())) for _ in range(64)], [None] * 32
        began = now()
        for i in range(count):
            ring[i & 31] = None
            ring[i & 31] = empty(sizes[i & 63], device=device)
        found["mixed"] = (now() - began) / count
        return found

    def fill(self, m):
        import storm
        self.storm = storm.Storm(m["live"], m["seed"], m.get("biggest", 256 << 20))
        return dict(planted=self.storm.planted())

    def blow(self, m):
        def note(done):
            with open(os.path.join(self.out, "storm-%d.json" % m["number"]), "w", encoding="utf-8") as file:
                json.dump(done, file)
        return dict(self.storm.run(m["for"], note), **self.end({}), release=self.storm.release())

    def fault(self, m):
        import storm
        for _ in range(100):  # what the storm itself keeps must be there first
            try:
                self.storm = storm.Storm(GIB // 2, 1, 32 << 20)
                self.storm.count.of(self.torch.cuda.default_stream())
                break
            except (RuntimeError, self.torch.OutOfMemoryError):
                pass
        return self.storm.short(m["operations"])

    def graphs(self, _):
        return self.storm.graphs()

    def release(self, _):
        return self.storm.release()

    def serve(self):
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        for line in sys.stdin:
            message = json.loads(line)
            try:
                answer = getattr(self, message["do"])(message)
            except Exception as error:  # pylint: disable=broad-except
                answer = dict(error="%s: %s" % (type(error).__name__, str(error)[:500]))
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        os._exit(0)


# ---- from outside ---------------------------------------------------------------------------------

def calm_cores(count):
    """So many cores of this process's that are fastest now, no two of them threads of one: processes that take turns share them."""
    def ns(core):
        os.sched_setaffinity(0, [core])
        began = time.perf_counter_ns()
        for _ in range(200000):
            pass
        return time.perf_counter_ns() - began

    def body(core):
        try:
            with open("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % core, encoding="utf-8") as file:
                return file.read()
        except OSError:
            return core
    mine, found = os.sched_getaffinity(0), {}
    for core in sorted(mine, key=lambda c: min(ns(c) for _ in range(5))):
        found.setdefault(body(core), core)
    os.sched_setaffinity(0, mine)
    return list(found.values())[:count]


class Other:
    """A process of the above."""

    def __init__(self, o, heavy=False, environment=None, before=(), cores=None):
        self.log = open(os.path.join(o.out, "log.txt"), "a", encoding="utf-8")
        self.p = subprocess.Popen([*before, sys.executable, os.path.abspath(__file__), o.out, o.cufrag, "--process"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=self.log, env=dict(os.environ, **(environment or {})))
        self.send(do="load", heavy=heavy, cores=cores)
        self.loaded = False

    def send(self, **message):
        try:
            self.p.stdin.write(json.dumps(message).encode() + b"\n")
            self.p.stdin.flush()
        except OSError:
            pass

    def answer(self, seconds):
        """What it says; an error when it is gone or takes longer."""
        line = b""
        until = time.monotonic() + seconds
        while not line.endswith(b"\n"):
            ready = select.select([self.p.stdout], [], [], max(0, until - time.monotonic()))[0]
            more = os.read(self.p.stdout.fileno(), 65536) if ready else b""
            if not more:
                self.p.kill()
                return dict(error="gone, code %s" % self.p.wait() if ready else "took longer than %.0f s" % seconds)
            line += more
        return json.loads(line)

    def ask(self, do, seconds=60, **message):
        self.send(do=do, **message)
        return self.answer(seconds)

    def ready(self, seconds):
        if not self.loaded:
            self.loaded = True
            return self.answer(seconds)
        return {}

    def close(self):
        self.p.kill()
        self.p.wait()


def ask_all(others, do, seconds=60, **message):
    """The same of several processes at once."""
    for other in others:
        other.send(do=do, **message)
    return [other.answer(seconds) for other in others]


class Proofs:
    def __init__(self, o):
        self.o, self.file = o, open(os.path.join(o.out, "proofs.jsonl"), "a", encoding="utf-8", buffering=1)

    def note(self, what, **row):
        row = dict(what=what, **row)
        self.file.write(json.dumps(row) + "\n")
        return row

    def say(self, text):
        print("%6.1f s  %s" % (time.monotonic() - live.BEGIN, text), flush=True)

    # ---- failing driver calls: first, while nothing else is on the card ----

    def faults(self, meanwhile):
        nvml = live.Nvml()
        others = [(policy, every, Other(self.o, environment={"CUFRAG_FAIL_EVERY": str(every)})) for policy, every in FAULTS]
        for _, _, other in others:
            other.ready(90)
        before = nvml.used()
        processes = [other for _, _, other in others]
        for policy, _, other in others:
            other.send(do="begin", job=job_of("cufrag " + policy))
        begun = [other.answer(60) for other in processes]
        meanwhile()
        answers = ask_all(processes, "fault", operations=self.o.operations)
        released = ask_all(processes, "release")
        books = ask_all(processes, "end")
        holding = nvml.used()
        # once more: memory in use by the card must not grow with what failed
        again = ask_all(processes, "fault", operations=self.o.operations)
        emptied = ask_all(processes, "release")
        after = nvml.used()
        for (policy, every, other), *rows in zip(others, begun, answers, released, books, again, emptied):
            self.note("fault", policy=policy, every=every, **dict(zip(("begin", "run", "release", "book", "again", "release_again"), rows)))
            other.close()
        self.note("fault leak", before=before, first=holding, second=after)
        self.say("faults: in use %s, after the first round %s, after the second %s" % (before, holding, after))

    # ---- a pair, a step: in turns ----

    def pairs(self, others):
        methods = ("default", "cufrag pytorch", "cufrag vmm", "expandable")
        for method, other in zip(methods, others):
            other.ask("begin", job=job_of(method))
            other.ask("pairs", count=2000)
        for i in range(self.o.rounds):
            for k in range(len(methods)):
                at = (i + k) % len(methods)
                self.note("pair", round=i, method=methods[at], **others[at].ask("pairs", count=self.o.pairs))
        for other in others:
            other.close()
        self.say("pairs")

    def turns(self, program, methods, others, until):
        """Turns of a few steps, the order turned round each time, so that a slow moment and the place in the order hit all alike."""
        size, most = TURN[program] if not self.o.dry else (1, 3)
        for method, other in zip(methods, others):
            other.ready(90)
            other.send(do="begin", job=job_of(method, program=program, steps=size * most + 1, threads=1))
        for method, other in zip(methods, others):
            answer = other.answer(60)
            if answer.get("error"):
                self.note("error", program=program, method=method, **answer)
        for i in range(most):
            order = [(i // 2 + k) % len(methods) for k in range(len(methods))]
            for at in reversed(order) if i % 2 else order:
                self.note("turn", program=program, turn=i, method=methods[at], **others[at].ask("step", steps=size))
            if left(self.o) < until:
                self.say("%s: stopped after turn %d" % (program, i))
                break
        for method, other in zip(methods, others):
            self.note("end", program=program, method=method, **other.ask("end"))
            other.close()
        self.say(program)

    def alone(self, program, other):
        """A training under `vmm` with the card and the host for itself: what it spends in the driver, from part to part."""
        size, most = TURN[program] if not self.o.dry else (1, 2)
        end = time.monotonic() + ALONE[program]
        other.ready(90)
        answer = other.ask("begin", job=job_of("cufrag vmm", program=program, steps=5 * size * most, threads=1))
        for part in range(most):
            if answer.get("error") or time.monotonic() > end:
                break
            answer = self.note("alone", program=program, part=part, **other.ask("step", steps=min(5, size * most) * size))
        self.note("alone end", program=program, **other.ask("end"))
        other.close()
        self.say("%s alone" % program)

    # ---- the real cudaMallocAsync ----

    def asynchronous(self):
        backend = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
        ways = [("async", backend), ("async, launches wait", dict(backend, CUDA_LAUNCH_BLOCKING="1")), ("cufrag async", {}),
                ("cufrag async, launches wait", {"CUDA_LAUNCH_BLOCKING": "1"}), ("default", {})]
        others = [Other(self.o, True, environment) for _, environment in ways]
        for (name, _), other in zip(ways, others):
            other.ready(90)
            job = job_of(name.split(",")[0], program="gnn", steps=31)
            if name == "default":
                job["record"] = True
            other.send(do="begin", job=job)
        for (name, _), other in zip(ways, others):
            self.note("async begin", way=name, **other.answer(60))
        for i in range(30):
            for other in others:
                other.send(do="step")
            for (name, _), other in zip(ways, others):
                self.note("async", step=i, way=name, **other.answer(60))
        for (name, _), other in zip(ways, others):
            self.note("async end", way=name, **other.ask("end", record=os.path.join(self.o.out, "gnn.pickle") if name == "default" else None))
            other.close()
        self.say("async")

    # ---- filled blocks, the sanitizer, and the losses of the other allocators at the same time ----

    def storms(self, others):
        for i, other in enumerate(others):
            other.ready(90)
            other.send(do="begin", job=job_of("cufrag " + STORMS[i], limit=self.o.storm_limit))
        for i, other in enumerate(others):
            answer = other.answer(90)
            if answer.get("error"):
                self.note("error", storm=STORMS[i], **answer)
            other.send(do="fill", live=self.o.storm_live, seed=i + 1, biggest=min(256 << 20, self.o.storm_live // 8))
        planted = [other.answer(90) for other in others]
        self.say("planted: " + " ".join(str(p.get("planted", p)) for p in planted))
        seconds = max(5, left(self.o) - 30)
        for i, other in enumerate(others):
            other.send(do="blow", **{"for": seconds}, number=i)
        return seconds, planted

    def storms_end(self, others, seconds, planted):
        for i, other in enumerate(others):
            row = other.answer(max(1, left(self.o) - 2))
            if row.get("error"):
                try:
                    row.update(json.load(open(os.path.join(self.o.out, "storm-%d.json" % i), encoding="utf-8")))
                except (OSError, ValueError):
                    pass
            self.note("storm", number=i, policy=STORMS[i], seconds=seconds, **dict(planted[i], **row))
            other.close()
        self.say("storms")

    def sanitizers(self):
        rows = []
        for policy in ("vmm", "pytorch"):
            path = os.path.join(self.o.out, "sanitizer-%s.txt" % policy)
            before = ("compute-sanitizer", "--tool", "memcheck", "--log-file", path, "--error-exitcode", "9")
            try:
                other = Other(self.o, before=before)
            except OSError as error:
                self.note("sanitizer", policy=policy, error=str(error))
                continue
            other.begun = time.monotonic()
            rows.append((policy, path, other))
        return rows

    def sanitizers_end(self, rows):
        for policy, path, other in rows:
            answers = {}
            if not other.ready(max(1, left(self.o) - 25)).get("error"):
                other.send(do="begin", job=job_of("cufrag " + policy))
                answers["begin"] = other.answer(max(1, left(self.o) - 20))
                other.send(do="fault", operations=200)
                answers["run"] = other.answer(max(1, left(self.o) - 18))
                other.send(do="graphs")
                answers["graphs"] = other.answer(max(1, left(self.o) - 15))
                other.send(do="release")
                answers["release"] = other.answer(max(1, left(self.o) - 12))
                other.p.stdin.close()  # it ends by itself: then the tool writes its summary
            try:
                code = other.p.wait(max(1, left(self.o) - 8))
            except subprocess.TimeoutExpired:
                other.close()
                code = None
            try:
                tail = open(path, encoding="utf-8").read()[-300:]
            except OSError:
                tail = None
            self.note("sanitizer", policy=policy, code=code, seconds=time.monotonic() - other.begun, tail=tail, **answers)
            self.say("sanitizer %s: %s" % (policy, (tail or "").strip().splitlines()[-1:]))

    def losses(self, names, until):
        """The other allocators: only whether the losses are equal, so that they may run beside the storms (where the
        card has room for them)."""
        jobs = [(n, m) for n in ("varlen", "hf", "lora", "vision", "serve") if n in names for m in OTHERS]
        waiting = []
        while left(self.o) > until and (jobs or waiting):
            while jobs and len(waiting) < 4:
                program, method = jobs.pop(0)
                environment = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"} if method == "async" else {}
                waiting.append((program, method, Other(self.o, True, environment)))
            program, method, other = waiting.pop(0)
            other.ready(60)
            answer = other.ask("begin", job=job_of(method, program=program, steps=5))
            for i in range(4):
                if answer.get("error") or left(self.o) < until:
                    break
                answer = other.ask("step", 40)
                self.note("loss", program=program, step=i, method=method, **answer)
            if answer.get("error"):
                self.note("error", program=program, method=method, **answer)
            other.close()
        for _, _, other in waiting:
            other.close()
        self.say("losses of the others")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("cufrag")
    parser.add_argument("--seconds", type=float, default=490)
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true", help="few and small: for a dry run")
    parser.add_argument("--only", default="faults,pairs,steps,async,storms", help="parts, separated by commas")
    parser.add_argument("--programs", help="only these, separated by commas")
    o = parser.parse_args()
    o.out = os.path.abspath(o.out)
    o.rounds, o.pairs, o.operations, o.storm_count = (2, 200, 100, 4) if o.dry else (30, 10000, 1500, len(STORMS))
    o.storm_limit, o.storm_live = (GIB, GIB // 2) if o.dry else (STORM_LIMIT, STORM_LIVE)
    def turns(name):
        return TURNS[1:3] if o.dry else TURNS if name in ROOM else TWICE

    if o.process:
        Process(o.out).serve()
    os.makedirs(o.out, exist_ok=True)
    os.environ["CUFRAG_TORCH_LIBRARY"] = os.environ.get("CUFRAG_TORCH_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(o.cufrag)), "libcufrag_torch.so")
    only, proofs = o.only.split(","), Proofs(o)
    names = o.programs.split(",") if o.programs else list(TURN)
    models = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.environ["LIVE_MODELS"] = models.name
    heavy, single, light, storms = {}, {}, [], []

    def prepare():
        cores = calm_cores(2)
        for name in names if "steps" in only else ():
            heavy[name] = [Other(o, name, cores=cores) for _ in turns(name)]
            if name in ALONE:
                single[name] = Other(o, name, cores=cores)
        light.extend(Other(o) for _ in range(4 if "pairs" in only else 0))

    if "faults" in only:
        proofs.faults(prepare)
    else:
        prepare()
    if "steps" in only or "storms" in only:
        import programs
        programs.build(names)
        proofs.say("models")
    for other in [x for some in heavy.values() for x in some] + light:
        other.ready(90)
    proofs.say("ready")
    if light:
        proofs.pairs(light)
    # until then: the steps alone have all of the time, otherwise 0.38 of it
    until = 8 if o.only == "steps" else o.seconds * .62
    for name, other in single.items():
        proofs.alone(name, other)
    for i, (name, others) in enumerate(heavy.items()):
        parts = [PARTS.get(other, 4) for other in list(heavy)[i:]]
        mine = until + (left(o) - until) * (1 - parts[0] / sum(parts))
        proofs.turns(name, turns(name), others, mine)
    if "storms" in only:
        storms = [Other(o) for _ in STORMS[:o.storm_count]]
    if "async" in only:
        proofs.asynchronous()
    if storms:
        seconds, planted = proofs.storms(storms)
        checks = proofs.sanitizers()
        thread = threading.Thread(target=proofs.sanitizers_end, args=(checks,), daemon=True)
        thread.start()
        proofs.losses(names, 35)
        thread.join(max(1, left(o) - 5))
        proofs.storms_end(storms, seconds, planted)


if __name__ == "__main__":
    main()
