# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own history of one process, written when it ends; see sitecustomize.py.

A recording is PID.pickle, as torch.cuda.memory._dump_snapshot writes it, with calls of empty_cache,
PID.pickle.meta.json (record_torch.py), and PID.json: rank, torch, and reports of the pretended
card. cufrag converts them to one .cft.
"""
import atexit
import contextlib
import importlib.util
import json
import os
import signal
import sys
import threading
import time

import cufrag_protocol as protocol

KEPT = []
TOLD = set()
NO_HISTORY = ("PyTorch keeps no history of its back end cudaMallocAsync; remove it from PYTORCH_CUDA_ALLOC_CONF "
              "(cufrag compare --policy async says what it would need)")
ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PATIENCE_S, WRITE_S = 3, 20  # for the program's own exit; for processes to write before they are killed
AGAIN_S = 0.05  # retries a kill that came during a callback from C
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


def say(text):
    try:
        print("cufrag record: " + text, file=sys.stderr, flush=True)
    except OSError:  # disk full
        pass


def attach(purpose, then, *given):
    """Calls then(*given), a hook into names that a release of PyTorch or another package may lack.
    Then the program goes on without it, and `cufrag` says so at the end
    (src/pretend/start/pretend.c), once for all processes."""
    try:
        return then(*given)
    except Exception as error:
        tell("without %s: %s: %s" % (purpose, type(error).__name__, error))
        return None


def tell(text, kind="hook"):
    text = " ".join(text.split())[:390]
    if text in TOLD:
        return
    TOLD.add(text)
    try:
        with open(protocol.PRETEND_CALLS, "a", errors="replace") as f:
            f.write("%s %s\n" % (kind, text))
    except OSError:  # a real card, or no room
        say("the program goes on " + text if kind == "hook" else text)


def settings_of(torch):
    """Keeps what a snapshot lacks: record_torch.py beside this file, not another module of that
    name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record_torch.py")
    spec = importlib.util.spec_from_file_location("cufrag_record_torch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    settings = module.Recorder(None)
    settings.torch = torch
    settings.note_calls()
    return settings


def is_installed(origin):
    return isinstance(origin, str) and ("/site-packages/" in origin or "/dist-packages/" in origin)


class Recorder:
    of_process = None

    def __init__(self):
        Recorder.of_process = self
        self.folder = protocol.RECORD
        self.pid = os.getpid()
        self.torch = self.card = self.settings = self.trial = None
        self.started = False

    def before(self, package):
        """torch is in `package` and about to be loaded."""
        if protocol.PRETEND:
            import cufrag_card
            self.card = cufrag_card.Card(package)
            self.card.before()

    def after(self, torch):
        self.torch = torch
        if not hasattr(torch, "cuda"):  # not PyTorch
            return
        if self.card:
            self.card.after(torch)
        if protocol.RUN:
            import cufrag.torch
            cufrag.torch.use_environment()
            KEPT.append(self)  # the card's callbacks
            return  # the policy's library records requests
        attach("a recording", self.watch, torch)

    def watch(self, torch):
        """Records from the first use of the card on."""
        self.settings = settings_of(torch)
        self.begin_trial()
        torch.cuda._lazy_call(self.start)
        atexit.register(self.finish)
        for name in ("_exit", "abort", "execv", "execve"):
            self.finish_before(name)
        self.ask_before_kill()
        for number in ENDS[1:]:
            if signal.getsignal(number) == signal.SIG_DFL:
                try:
                    signal.signal(number, self.leave)
                except ValueError:
                    pass  # not the main thread: SIGTERM then loses the recording

    def begin_trial(self):
        if self.card and (protocol.TRIALS or protocol.CHANGES):
            import cufrag_changes
            self.trial = attach("advice", cufrag_changes.Trial, self.torch, self)

    def fork(self):
        """In a fork of cufrag_fork_server.py that is to record itself."""
        self.folder, self.pid = protocol.RECORD, os.getpid()
        if self.card:
            self.card.fork()
        self.begin_trial()

    def finish_before(self, name):
        """Hooks functions that end a process without exit handlers."""
        original = getattr(os, name)

        def end(*args, **kwargs):
            self.finish()
            return original(*args, **kwargs)
        setattr(os, name, end)

    def ask_before_kill(self):
        """A program that kills its own processes (SGLang) waits for those that record to write."""
        original = os.kill

        def kill(pid, number):
            begun = os.path.join(self.folder or "", "%d.begun" % pid)
            if number == signal.SIGKILL and pid != os.getpid() and os.path.exists(begun):
                original(pid, signal.SIGTERM)
                until = time.monotonic() + WRITE_S
                while os.path.exists(begun) and time.monotonic() < until:
                    time.sleep(0.01)
            return original(pid, number)
        os.kill = kill

    def leave(self, number, frame):
        """SIGTERM still writes the recording; forked children have none, and end as usual."""
        if os.getpid() == self.pid:
            if self.card and self.card.is_steering(frame):
                threading.Timer(AGAIN_S, os.kill, (self.pid, number)).start()
                return
            waits = threading.Timer(PATIENCE_S, self.finish)  # other threads may never end
            waits.daemon = True
            with contextlib.suppress(RuntimeError):  # during shutdown, Python starts no threads
                waits.start()
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def tell_modules(self, path):
        """Reports loaded modules of installed packages to cufrag_fork_server.py: at the program's
        first use of a card, and at its end."""
        names = [n for n, m in list(sys.modules.items()) if is_installed(getattr(getattr(m, "__spec__", None), "origin", None))]
        with contextlib.suppress(OSError):  # no room: the next run loads its modules itself
            with open("%s.%d" % (path, os.getpid()), "w") as f:
                f.write("\n".join(n for n in names if not n.startswith("cufrag") and n == sys.modules[n].__spec__.name))
            os.replace("%s.%d" % (path, os.getpid()), path)

    def tell_late_modules(self):
        if protocol.PRETEND_MODULES:
            self.tell_modules(protocol.PRETEND_MODULES + ".late")

    def start(self):
        self.pid = os.getpid()  # perhaps a child, forked after loading torch but before using a card
        if protocol.PRETEND_MODULES:
            self.tell_modules(protocol.PRETEND_MODULES)
        memory = self.torch.cuda.memory
        limit = protocol.RECORD_LIMIT
        if limit:
            for device in range(self.torch.cuda.device_count()):
                total = self.torch.cuda.get_device_properties(device).total_memory
                memory.set_per_process_memory_fraction(min(1.0, limit / total), device)
        try:
            memory._record_memory_history(
                enabled="all", context="all" if protocol.RECORD_FRAMES else None, stacks="python",
                max_entries=protocol.RECORD_ENTRIES)
        except Exception as error:  # TypeError: before 2.1
            say("process %d is not recorded: %s" % (self.pid, NO_HISTORY if "cudaMallocAsync" in str(error) else error))
            return
        self.started = True
        try:  # the pretended card does so at the first allocation
            if not self.card:
                open(os.path.join(self.folder, "%d.begun" % self.pid), "w").close()
        except OSError:
            pass
        # a program's own snapshots find the history on, and cannot switch it off
        memory._record_memory_history = lambda *args, **kwargs: None

    def rank(self):
        dist = sys.modules.get("torch.distributed")
        if dist and dist.is_available() and dist.is_initialized():
            return dist.get_rank()
        return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), 0)

    def notes(self):
        out = {"rank": self.rank(), "world": int(os.environ.get("WORLD_SIZE", "1")),
               "torch": self.torch.__version__, "program": os.path.basename(sys.argv[0] or "")}
        if self.card:
            out.update(self.card.notes())
        return out

    def asked(self):
        """Did it allocate memory of a card? Helper processes (Inductor's workers) only query it."""
        cuda = self.torch.cuda
        try:
            stats = [cuda.memory_stats(d) for d in range(cuda.device_count())]
            return any(s.get("allocation.all.allocated", 1) or s.get("num_ooms") for s in stats)
        except Exception:  # ask its history
            return True

    def finish(self):
        if os.getpid() != self.pid:
            return  # forked by the program
        started, self.started = self.started, False
        before = {}
        try:  # a second Ctrl-C must not interrupt it
            before = {n: signal.signal(n, signal.SIG_IGN) for n in ENDS}
        except ValueError:
            pass  # not the main thread
        if started:
            self.tell_late_modules()
        written = not (started and self.asked()) or self.write()
        begun = os.path.join(self.folder, "%d.begun" % self.pid)
        try:  # tells lost recordings from unused cards
            os.unlink(begun) if written else os.rename(begun, begun[:-5] + "unwritten")
        except OSError:
            pass
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler in (None, self.leave) else handler)  # everything is written

    def write(self):
        stem = os.path.join(self.folder, str(self.pid))
        while os.path.exists(stem + ".pickle"):  # by the program that this process ran before exec
            stem += "-"
        try:
            notes = self.notes()
            if self.trial:
                self.trial.finish(self.folder)
            if self.card:
                self.card.write_clock(stem + ".clock")
            self.settings.dump(stem + ".pickle.tmp")
            with open(stem + ".json", "w") as f:
                json.dump(notes, f)
            self.settings.describe(stem + ".pickle.meta.json")
            os.replace(stem + ".pickle.tmp", stem + ".pickle")  # complete or absent
            return True
        except Exception as error:
            say("the recording of process %d is lost: %s" % (self.pid, error))
            return False
