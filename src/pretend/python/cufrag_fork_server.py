# SPDX-License-Identifier: Apache-2.0
"""One Python from which the processes of many runs are forked: torch, and what the first run
imported, is loaded once, for `cufrag layout` and `cufrag advise`.

In the first run, Python describes itself (src/pretend/start/child.h has the files): a command
that starts the server as `python OPTIONS cufrag_fork_server.py FD MODULES`. FD is a socket that
listens, MODULES a file with names of modules, in the order in which a run had imported them when it
first asked for a card; MODULES.late has those of its end.

In every other run, a Python connects when it starts, and sends a byte with its standard files, then
a line of JSON: how it was started. The answer is "no", or "pid N" and, when that process has ended,
"end STATUS" as of waitpid. Until then this Python stands for it. If it goes away first, the process
is killed.

A process forked here is as one started anew: its arguments, environment, standard files, group,
random numbers; a recording of its own. It is refused if anything differs that was read while
modules were loaded: any other variable, or another folder. If a module asks for a card or for a
variable of a single rank, or leaves a thread of Python or a process behind, then only torch is
loaded. (Threads of libraries, as those of BLAS, see to themselves: pthread_atfork.)
"""
import array
import atexit
import ctypes
import fcntl
import gc
import importlib
import importlib.machinery
import io
import json
import os
import posix
import re
import resource
import select
import shlex
import signal
import socket
import sys
import tempfile
import threading
import types

import cufrag_protocol as protocol

OF_A_RANK = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
             "MASTER_PORT", "PET_MASTER_PORT", "CUDA_VISIBLE_DEVICES"}
OF_A_RUN = OF_A_RANK | protocol.OF_A_RUN | {
    "TMPDIR", "WANDB_DIR", "COMET_OFFLINE_DIRECTORY", "MLFLOW_TRACKING_URI", "_"}
UNFIT = 9
LOST = 125  # status of a process of which the server was ended
PATIENCE_S = 60  # for an answer of a server that still loads
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
LIBC = ctypes.CDLL(None)


def started_as():
    """(words of Python and its options, those of the program); ([], []): it is started anew."""
    with open("/proc/self/cmdline", "rb") as f:
        words = [os.fsdecode(w) for w in f.read().split(b"\0")[:-1]]
    module = sys.argv[:1] == ["-m"]
    count = len(words) - len(sys.argv) - module
    known = re.fullmatch("(-[uBObdq]+ |-[XW] ?[^ ]* )*", "".join(w + " " for w in words[1:count]))
    fits = known and count > 0 and (module and words[count:count + 1] == ["-m"] or os.path.isfile(sys.argv[0]))
    return (words[:count], words[count:]) if fits else ([], [])


def lasting(environment):
    """What modules may have read. Of the card that is its capability: it decides which code of a
    kernel is taken as a library is loaded."""
    kept = {k: v for k, v in environment.items() if k not in OF_A_RUN}
    kept["capability"] = environment.get("CUFRAG_PRETEND", "").partition(";cc=")[2].split(";")[0]
    return kept


# ---- in a Python of a run

def stand_in():
    """As it starts. Returns if it is to go on."""
    ask, modules = os.environ.pop("CUFRAG_PRETEND_FORKS", None), os.environ.get("CUFRAG_PRETEND_MODULES")
    python, words = started_as()
    try:
        if python and ask:
            ask_for_fork(ask, python, words)
        elif python and modules:
            describe(os.path.dirname(modules), python)
    except (OSError, ValueError):  # another one did so, or the server is gone
        pass


def describe(folder, python):
    own = {"CUFRAG_READ_FILES": "read", "CUFRAG_HELD": "held"}
    environment = {k: os.path.join(folder, own[k]) if k in own else v for k, v in os.environ.items() if k != "CUFRAG_PRETEND_MODULES"}
    command = ["exec", "/usr/bin/env", "-i", *map("=".join, environment.items()), *python, os.path.abspath(__file__)]
    with open(os.path.join(folder, "first"), "x", errors="surrogateescape") as f:
        f.write("cd %s && %s \"$@\"\n" % (shlex.quote(os.getcwd()), shlex.join(command)))


def ask_for_fork(path, python, words):
    connection, folder = socket.socket(socket.AF_UNIX), os.open(os.path.dirname(path), os.O_RDONLY)
    connection.connect("/proc/self/fd/%d/%s" % (folder, os.path.basename(path)))  # a short path
    os.close(folder)
    umask = os.umask(0)
    os.umask(umask)
    request = {"python": python, "words": words, "environment": dict(os.environ),
               "folder": os.getcwd(), "group": os.getpgrp(), "umask": umask}
    connection.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))])
    connection.sendall(json.dumps(request).encode() + b"\n")
    connection.settimeout(PATIENCE_S)
    answers = connection.makefile("rb")
    if select.select([connection], [], [], PATIENCE_S)[0]:
        pid = re.fullmatch(b"pid (\\d+)\n", answers.readline())
        if pid:
            stand_for(int(pid[1]), connection, answers)


def stand_for(pid, connection, answers):
    """Signals for the group reach the other process anyway; those for this one are passed on."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals | {signal.SIGIO})
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != connection.fileno():
            try:
                os.close(fd)
            except OSError:  # that of the list itself
                pass
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
    while not select.select([connection], [], [], 0)[0]:
        info = signal.sigwaitinfo(signals | {signal.SIGIO})
        if info.si_signo in signals and info.si_code == 0 and info.si_pid == os.getppid():
            os.kill(pid, info.si_signo)
    ended = re.fullmatch(b"end (\\d+)\n", answers.readline())
    end_as(int(ended[1]) if ended else LOST << 8)


def end_as(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), number)
    posix._exit(status >> 8)


# ---- the server

class Loaded:
    """What every process begins with."""

    def __init__(self):
        self.given, self.python = dict(os.environ), started_as()[0]
        self.folder, self.read_files = os.getcwd(), protocol.READ_FILES
        for name in OF_A_RUN - {"CUFRAG_PRETEND", "CUFRAG_PRETEND_ROOF", "CUFRAG_RECORD"}:
            os.environ.pop(name, None)
        self.torch = importlib.import_module("torch")
        import cufrag_recorder
        self.recorder = cufrag_recorder.Recorder.of_process
        self.asked = False

    def load(self, names):
        """False: not fit for forks."""
        def ask(*_):
            self.asked = True
            raise RuntimeError("no card is here yet")
        cuda, core, environment = self.torch.cuda, self.torch._C, type(os.environ)
        available = (lambda: True) if "CUDA_VISIBLE_DEVICES" not in self.given else ask
        places = [(cuda, "is_available", available), (cuda, "_lazy_init", ask),
                  (core, "_cuda_getDeviceCount", ask)]
        before = [(home, name, getattr(home, name, None)) for home, name, _ in places]
        get = environment.__getitem__
        if any(function is None for _, _, function in before):  # it would not be seen
            return False

        def watched(variables, name):
            self.asked |= name in OF_A_RANK
            return get(variables, name)
        for place in places:
            setattr(*place)
        environment.__getitem__ = watched
        try:
            for name in names:
                if name not in sys.modules:
                    importlib.import_module(name)
        except BaseException:
            return False
        finally:
            environment.__getitem__ = get
            for place in before:
                setattr(*place)
        return not self.asked and threading.active_count() == 1 and not has_children()

    def leave_out(self):
        """Python's garbage collector looks through all objects when a quarter of their number is
        new. What was loaded here stays until the end, so it is left out, but counts: forks look as
        rarely as if it were not."""
        gc.collect()
        self.modules, self.files = set(sys.modules) - {"__main__"}, files_among(gc.get_objects())
        gc.freeze()
        young, middle, old = gc.get_threshold()
        if young and middle:
            gc.set_threshold(young, middle, max(old, gc.get_freeze_count() // 4 // (young * middle)))

    def changes(self):
        """Variables that loading has changed: name -> value, or None."""
        now, before = lasting(os.environ), lasting(self.given)
        return {k: now.get(k) for k in now.keys() | before.keys() if now.get(k) != before.get(k)}

    def follow_files(self, path):
        """What was loaded before was read by this process, too."""
        if not self.read_files:
            return
        if path:
            with open(self.read_files, "rb") as f, open(path, "ab") as to:
                to.write(f.read())
        LIBC.cufrag_read_files_into(os.fsencode(path))


def has_children():
    try:
        os.waitpid(-1, os.WNOHANG)
        return True
    except ChildProcessError:
        return False


def load(modules):
    """What a run had imported when it asked for a card, then what it imported later. Forks before
    each, as nothing can be unloaded. Returns in the process that serves."""
    loaded = Loaded()
    for path in (modules, modules + ".late"):
        pid = os.fork()
        if pid:
            status = os.waitpid(pid, 0)[1]
            if status >> 8 != UNFIT:
                posix._exit(1)
            break
        LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL)
        names = open(path).read().split() if os.path.exists(path) else []
        if not loaded.load(names):
            posix._exit(UNFIT)
    loaded.leave_out()
    return loaded


class Request:
    def __init__(self, connection):
        connection.settimeout(10)
        self.files = array.array("i")
        for _, _, data in connection.recvmsg(1, socket.CMSG_SPACE(3 * 4))[1]:
            self.files.frombytes(data[:len(data) - len(data) % 4])
        with connection.makefile("rb") as f:
            vars(self).update(json.loads(f.readline()))

    def fits(self, loaded):
        return (len(self.files) == 3 and self.python == loaded.python and
                self.folder == loaded.folder and lasting(self.environment) == lasting(loaded.given))


class Server:
    def __init__(self, listener, loaded):
        self.listener, self.loaded, self.runs = listener, loaded, {}  # pid -> connection

    def serve(self):
        """Returns a request, in the process that it asked for."""
        while True:
            connections = [self.listener, *self.runs.values()]
            ready = select.select(connections, [], [], 0.01 if self.runs else None)[0]
            for pid, connection in list(self.runs.items()):
                if connection in ready:  # the other side is gone
                    os.kill(pid, signal.SIGKILL)
            self.reap()
            if self.listener in ready:
                connection = self.listener.accept()[0]
                try:
                    request = Request(connection)
                    if self.fork(connection, request):
                        return request
                except (OSError, ValueError):
                    connection.close()

    def fork(self, connection, request):
        fits = request.fits(self.loaded)
        pid = os.fork() if fits else -1
        if not pid:
            LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL)
            for other in [self.listener, connection, *self.runs.values()]:
                other.close()
            return True
        for fd in request.files:
            os.close(fd)
        connection.sendall(b"pid %d\n" % pid if fits else b"no\n")
        if fits:
            self.runs[pid] = connection
        else:
            connection.close()
        return False

    def reap(self):
        for pid in list(self.runs):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                try:
                    self.runs[pid].sendall(b"end %d\n" % status)
                except OSError:
                    pass
                self.runs.pop(pid).close()


def become(loaded, request):
    """All that a new process would have of its own."""
    try:
        os.setpgid(0, request.group)
    except OSError:  # the process that asked is gone
        posix._exit(1)
    for number, fd in enumerate(request.files):
        os.dup2(fd, number)
        os.close(fd)
    os.umask(request.umask)
    environment = {**request.environment, **loaded.changes()}
    for name in [n for n in os.environ if environment.get(n) is None]:
        del os.environ[name]
    os.environ.update({n: value for n, value in environment.items() if value is not None and os.environ.get(n) != value})
    LIBC.cufrag_held_into(os.fsencode(protocol.HELD))
    tempfile.tempdir = None  # of the process that serves
    loaded.follow_files(protocol.READ_FILES)
    numpy = sys.modules.get("numpy")
    if numpy:
        numpy.random.seed()
    loaded.recorder.fork()


def run_program(words):
    """As Python does with the words behind its own options."""
    safe = getattr(sys.flags, "safe_path", False)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    if words[0] == "-m":
        import runpy
        sys.argv[:] = ["-m"] + words[2:]
        if not safe:
            sys.path.insert(0, os.getcwd())
        runpy._run_module_as_main(words[1])
        return
    sys.argv[:] = words
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
    path = os.path.abspath(words[0]) if sys.version_info >= (3, 9) else words[0]
    main.__file__, main.__cached__, main.__package__ = path, None, None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    with open(path, "rb") as f:
        exec(compile(f.read(), path, "exec", dont_inherit=True), main.__dict__)


def flush(files):
    """What was written into them and not yet to disk. Layers above others first."""
    for kind in (io.TextIOWrapper, io.BufferedIOBase):
        for file in files:
            try:
                if isinstance(file, kind) and not file.closed:
                    file.flush()
            except Exception:  # nor does Python say so as it ends
                pass


def files_among(objects):
    kinds = {k for k in map(type, objects) if issubclass(k, (io.TextIOWrapper, io.BufferedIOBase))}
    return [o for o in objects if type(o) in kinds]


def take_apart(names):
    """The program's own modules, as Python does when it ends: their objects are closed and
    finalized."""
    for module in [sys.modules.pop(n) for n in reversed(names)]:
        if isinstance(module, types.ModuleType):
            vars(module).update(dict.fromkeys(n for n in vars(module) if n != "__builtins__"))
    module = None
    gc.collect()


def end(loaded):
    """What Python does when a program has come to its end, but for what was loaded before: taking
    that apart takes longer than all of this, without effect. A file in a cycle of objects may be
    closed before the text for it has come that far, so all are flushed first."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        for file in (sys.stdout, sys.stderr):
            if file and not file.closed:
                file.flush()
    except Exception:  # Python ends with another status
        return
    flush(loaded.files + files_among(gc.get_objects()))
    take_apart([n for n in sys.modules if n not in loaded.modules])
    flush(loaded.files + files_among(gc.get_objects()))
    LIBC.fflush(None)
    if protocol.READ_FILES:
        LIBC.cufrag_read_files_end()
    posix._exit(0)


def prepare():
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the folder of this file
    listener = socket.socket(fileno=int(sys.argv[1]))
    listener.setblocking(True)
    loaded = load(sys.argv[2])
    request = Server(listener, loaded).serve()
    become(loaded, request)
    return loaded, request.words


if __name__ == "__main__":
    loaded, words = prepare()
    try:
        run_program(words)
    except SystemExit as ended:
        if ended.code:
            raise
    end(loaded)
