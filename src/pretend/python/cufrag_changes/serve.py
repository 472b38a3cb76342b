# SPDX-License-Identifier: Apache-2.0
"""One process from which all runs of a program are forked, when it first asks for a card.

Up to there they do the same: imports, mostly, which take longer than all that follows. The process stays there, reads lines
"FOLDER SECONDS NAME+NAME" from the FIFO `ask` of CUFRAG_TRIALS and forks for each: the child goes on with the program, its
recording goes to CUFRAG_TRIALS/FOLDER, where `status` tells how it ended. Programs with other threads by then, and processes that
are started by the program, are not forked: then no file `ready` is there, and each run is a start of its own.
"""
import ctypes
import functools
import gc
import os
import random
import select
import shutil
import signal
import sys
import threading
import time
import traceback

from .batches import is_card


def at_first_question(trial):
    torch = trial.torch
    if os.getppid() != int(os.environ.get("CUFRAG_TRIALS_PARENT", "0")):
        return
    places = [(torch.cuda, "_lazy_init"), (torch._C, "_cuda_getDeviceCount"), (torch.nn.Module, "cuda"), (torch.nn.Module, "to")]
    before = [(home, name, getattr(home, name)) for home, name in places if hasattr(home, name)]

    def asked(home, name, original):
        @functools.wraps(original)
        def first(*args, **kwargs):
            if name == "to" and not any(is_card(torch, a) for a in (*args[1:], *kwargs.values())):
                return original(*args, **kwargs)
            for place in before:
                setattr(*place)
            if threading.active_count() == 1:
                Server(trial).serve()
            return getattr(home, name)(*args, **kwargs)  # a change may be in it now
        return first
    for home, name, function in before:
        setattr(home, name, asked(home, name, function))


class Server:
    def __init__(self, trial):
        self.trial, self.root = trial, os.environ["CUFRAG_TRIALS"]
        self.running = {}  # pid -> (folder, time at which it is ended)

    def serve(self):
        """Returns in children only."""
        held = os.environ.get("CUFRAG_HELD")  # what the program wrote so far, for each of its runs
        if held:
            shutil.copytree(held, os.path.join(self.root, "held"), symlinks=True)
        open(os.path.join(self.root, "ready"), "w").close()
        gc.collect()
        gc.freeze()
        try:
            if self.loop():
                return
        except BaseException:  # a signal: nobody is left behind
            for pid in self.running:
                self.kill(pid)
            os._exit(1)
        sys.stdout.flush()
        self.trial.recorder.torch = None
        os.kill(os.getpid(), signal.SIGKILL)  # the exit handlers of the program belong to its runs

    def loop(self):
        """True in a child; False when nobody asks any more."""
        ask = os.open(os.path.join(self.root, "ask"), os.O_RDONLY)
        text, ended = b"", False
        while not ended or self.running:
            if not ended and select.select([ask], [], [], 0.02)[0]:
                more = os.read(ask, 4096)
                ended, text = not more, text + more
            elif ended:
                time.sleep(0.02)
            while b"\n" in text:
                line, text = text.split(b"\n", 1)
                if self.start(*line.decode().split(" ")):
                    os.close(ask)
                    return True
            self.reap()
        return False

    def start(self, folder, seconds, names):
        path = os.path.join(self.root, folder)
        os.makedirs(path, exist_ok=True)
        own = os.path.join(path, "held")
        if "CUFRAG_HELD" in os.environ and not os.path.exists(own):  # the first run goes on with that of this process
            shutil.copytree(os.path.join(self.root, "held"), own, symlinks=True)
        sys.stdout.flush()
        sys.stderr.flush()
        state = random.getstate()
        pid = os.fork()
        random.setstate(state)  # Python seeds it anew in a child
        if pid:
            self.running[pid] = folder, time.monotonic() + float(seconds)
            return False
        os.setpgid(0, 0)
        self.become(path, names)
        return True

    def become(self, path, names):
        trial = self.trial
        trial.recorder.folder = os.environ["CUFRAG_RECORD"] = path
        trial.recorder.pid = os.getpid()
        if "CUFRAG_HELD" in os.environ:  # what the program wrote so far is there; the rest is this run's own
            os.environ["CUFRAG_HELD"] = os.path.join(path, "held")
            ctypes.CDLL(None).cufrag_held_into(os.environb[b"CUFRAG_HELD"])
        for name in [n for n in os.environ if n.startswith("CUFRAG_TRIALS")]:
            del os.environ[name]
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if names:
            log = os.open(os.path.join(path, "log"), os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(log, 2)
            os.environ["CUFRAG_CHANGES"] = names
        trial.all = not names
        trial.torch.set_num_threads(1)  # those that the parent had are not in this process
        try:
            trial.install(names)
        except Exception:
            traceback.print_exc()
            raise

    def kill(self, pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass

    def reap(self):
        for pid, (folder, until) in list(self.running.items()):
            if time.monotonic() > until:
                self.kill(pid)
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del self.running[pid]
            self.kill(pid)  # what it started and left
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            path = os.path.join(self.root, folder, "status")
            with open(path + ".tmp", "w") as f:
                f.write("%d %d\n" % (code, time.monotonic() > until))
            os.replace(path + ".tmp", path)
