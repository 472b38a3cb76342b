# SPDX-License-Identifier: Apache-2.0
"""The pretended card inside a Python process that imports torch.

Set by cufrag: CUFRAG_NOGPU describes the card (src/pretend/card/card.c); CUFRAG_NOGPU_HOME has
files shared by all programs; CUFRAG_NOGPU_CACHE holds what is built once per wheel;
CUFRAG_NOGPU_VALUES, _SEED, _RANK, _REPORT.
"""
import atexit
import ctypes
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import linecache
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

import cufrag_compiling
import cufrag_loops
from cufrag_recorder import attach, say

CORE = "libcufrag_nogpu.so"
VALUES = "cufrag_values.so"
# Caches of packages: kernels (empty here), timings, capabilities of cards. A real card must not use
# them, so they are in folders of their own beside the libraries.
CACHES = {"CUPY_CACHE_DIR": "cupy", "DG_JIT_CACHE_DIR": "deep_gemm", "NUMBA_CACHE_DIR": "numba",
          "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "VLLM_CACHE_ROOT": "vllm"}


class Card:
    def __init__(self, package):
        self.package = package
        self.home = os.environ["CUFRAG_NOGPU_HOME"]
        self.core = os.path.join(self.home, CORE)
        self.values = None
        self.steered = {}
        self.losses = 0  # number of unknown losses that LBFGS has read
        self.loops = cufrag_loops.Loops()

    # ---- before torch: libraries

    def key(self):
        """Of the wheel, of packages beside it, and of this version of the pretended card."""
        import cufrag_stubs
        h = hashlib.sha256(self.home.encode())
        libraries = os.path.join(self.package, "lib")
        for path in [os.path.join(libraries, name) for name in sorted(os.listdir(libraries)) if ".so" in name] + cufrag_stubs.wheels(libraries):
            state = os.stat(path)
            h.update(("%s %d %d\n" % (path, state.st_size, state.st_mtime_ns)).encode())
        h.update(self.package.encode())
        return h.hexdigest()[:24]

    def before(self):
        self.folder = os.path.join(os.environ["CUFRAG_NOGPU_CACHE"], self.key())
        self.offer_planner()
        torn = os.path.isdir(self.folder)
        try:
            self.load()
        except OSError:  # not made yet, or partly cleaned up
            if torn:
                shutil.rmtree(self.folder, ignore_errors=True)
            try:
                self.make()
                self.load()
            except OSError as error:
                raise SystemExit("cufrag record: cannot create the libraries of the pretended card: %s; set XDG_CACHE_HOME to a "
                                 "writable folder" % error) from None
        self.watch_libraries()
        os.environ["TRITON_LIBCUDA_PATH"] = self.folder
        # Triton 2.1 only asks ldconfig
        After("triton.common.build", lambda build: setattr(build, "libcuda_dirs", lambda: [self.folder]), "the place of Triton's driver")
        self.caches = {name: os.path.join(self.folder, folder) for name, folder in CACHES.items()}
        os.environ.update(self.caches)
        cufrag_compiling.begin_cold(self.caches)
        os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
            [self.folder] + [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p and p != self.folder])
        self.load_s = -time.process_time()

    def watch_libraries(self):
        """Patches static CUDA runtimes in the program's own libraries when they are loaded; CUDA's
        own libraries are left alone."""
        import cufrag_static
        import cufrag_stubs
        adopt = cufrag_static.Libraries(self.core).look

        def after(original):
            def load(*args, **kwargs):
                result = original(*args, **kwargs)
                adopt()
                return result
            return load
        adopt()
        loader = importlib.machinery.ExtensionFileLoader
        loader.create_module = after(loader.create_module)
        opened = after(ctypes.CDLL.__init__)
        ctypes.CDLL.__init__ = lambda lib, name=None, *args, **kwargs: opened(lib, cufrag_stubs.instead(self.folder, name), *args, **kwargs)

    def load(self):
        """Loads them in this order: later lookups by name find loaded libraries before any search
        path."""
        with open(os.path.join(self.folder, "libraries")) as f:
            names = f.read().split()
        for path in [self.core] + [os.path.join(self.folder, name) for name in names]:
            ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)

    def offer_planner(self):
        """Path of the user's cuDNN, to plan convolutions (cufrag_planner.py): beside torch, or the
        system's."""
        name = "libcudnn.so.9"
        near = [os.path.join(os.path.dirname(self.package), "nvidia", "cudnn", "lib"), os.path.join(self.package, "lib")]
        path = os.environ.get("LD_LIBRARY_PATH", "")
        folders = near + path.split(os.pathsep) + [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64"),
                                                   "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu"]
        found = [os.path.join(f, name) for f in folders if f and f != self.folder and os.path.exists(os.path.join(f, name))]
        if found and sys.executable:
            import cufrag_stubs
            os.environ["CUFRAG_NOGPU_PLANNER"] = "\n".join([sys.executable, os.path.join(HERE, "cufrag_planner.py"), found[0]])
            os.environ["CUFRAG_NOGPU_PLANNER_PATH"] = os.pathsep.join([os.path.join(self.folder, cufrag_stubs.NO_CARD)] + [
                p for p in path.split(os.pathsep) if p and p != self.folder])

    def make(self):
        """Writes into a new folder and renames it, so that processes do not collide."""
        import cufrag_stubs
        parent = os.path.dirname(self.folder)
        os.makedirs(parent, mode=0o700, exist_ok=True)
        temp = tempfile.mkdtemp(dir=parent)
        try:
            names = cufrag_stubs.make(os.path.join(self.package, "lib"), temp, self.core)
            with open(os.path.join(temp, "libraries"), "w") as f:
                f.write("\n".join(names))
            try:
                os.rename(temp, self.folder)
            except OSError:
                if not os.path.isdir(self.folder):
                    raise
        finally:
            shutil.rmtree(temp, ignore_errors=True)

    # ---- after torch: values, ranks

    def after(self, torch):
        self.load_s += time.process_time()
        atexit.register(self.let_threads_rest, torch)
        try:  # PyTorch refuses a cuDNN older than its build
            major, minor, patch = torch._C._cudnn.getCompileVersion()
            os.environ["CUFRAG_NOGPU_CUDNN"] = str(major * (10000 if major > 8 else 1000) + minor * 100 + patch)
        except AttributeError:
            pass
        mode = os.environ.get("CUFRAG_NOGPU_VALUES", "rules")
        if mode != "none":
            attach("values of small tensors, so decisions that depend on them may be wrong", self.offer_values, torch, mode)
        if torch.distributed.is_available():
            import cufrag_ranks
            attach("settled buckets of DistributedDataParallel, so they may be there twice", cufrag_ranks.settle_buckets, torch)
        After("torch._inductor.compile_worker.subproc_pool", self.end_workers, "an end within seconds where processes that compile do not end")
        After("torch._inductor.async_compile", cufrag_compiling.Pool(self.load_s).watch, "Inductor's processes as they are on a card's host")
        if os.environ.get("TORCH_WARM_POOL") == "0":
            After("torch._inductor.runtime.compile_tasks", cufrag_compiling.forget_between, "kernels compiled by another process each time")
        import cufrag_alike
        cufrag_alike.watch()
        self.play_ranks(torch)
        attach("a card for each process of torch.multiprocessing.spawn (--gpus N gives them)", self.count_spawned, torch)
        for package in ("lightning.fabric", "lightning_fabric"):
            After(package + ".utilities.device_parser", self.watch_lightning, "the number of cards that Lightning asks for (--gpus N gives it)")

    def offer_values(self, torch, mode):
        path = self.values_library(torch)
        if path:
            self.start_values(torch, path, mode)

    @staticmethod
    def end_workers(compile_worker):
        """Python 3.12 can leave Inductor's worker processes behind ("can't create new thread at
        interpreter shutdown"); PyTorch waits 300 s for them."""
        shutdown = compile_worker.SubprocPool.shutdown

        def shutdown_soon(pool):
            wait = pool.process.wait

            def wait_or_kill(timeout=None):
                try:
                    return wait(5)
                except subprocess.TimeoutExpired:
                    pool.process.kill()
                    return wait()
            pool.process.wait = wait_or_kill
            return shutdown(pool)
        compile_worker.SubprocPool.shutdown = shutdown_soon

    @staticmethod
    def count_spawned(torch):
        """Unless the user set the number of cards, each process of mp.spawn has one, like processes
        of a launcher."""
        module = sys.modules["torch.multiprocessing.spawn"]
        start = module.start_processes

        def start_processes(fn, args=(), nprocs=1, *more, **rest):
            before = os.environ["CUFRAG_NOGPU"]
            os.environ["CUFRAG_NOGPU"] = re.sub(r"\bleast=(\d+)", lambda found: "least=%d" % max(int(found[1]), nprocs), before)
            try:
                return start(fn, args, nprocs, *more, **rest)
            finally:
                os.environ["CUFRAG_NOGPU"] = before
        module.start_processes = torch.multiprocessing.start_processes = start_processes

    @staticmethod
    def watch_lightning(parser):
        """The program counted the cards before it selected one, and PyTorch caches that count, so
        more cannot be added: tell the user."""
        sanitize = parser._sanitize_gpu_ids

        def told(gpus, *more, **rest):
            try:
                return sanitize(gpus, *more, **rest)
            except Exception:
                if gpus and os.environ.get("CUFRAG_NOGPU_CALLS"):
                    with open(os.environ["CUFRAG_NOGPU_CALLS"], "a") as f:
                        f.write("card %d\n" % max(gpus))
                raise
        parser._sanitize_gpu_ids = told

    def play_ranks(self, torch):
        if os.environ.get("CUFRAG_NOGPU_RANK") or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            import cufrag_ranks
            ctypes.CDLL(self.core).frag_nogpu_present()
            attach("ranks that do not run", cufrag_ranks.play, torch)

    def begin(self, torch):
        """After a fork: resets the state of this run."""
        ctypes.CDLL(self.core).frag_nogpu_card_again()
        if self.values:
            self.values.cufrag_values_roof(*self.roof())
        self.play_ranks(torch)

    @staticmethod
    def roof():
        return [ctypes.c_double(float(n)) for n in os.environ.get("CUFRAG_NOGPU_ROOF", "0,0,0").split(",")]

    def let_threads_rest(self, torch):
        """autograd's threads still clean up after the last backward pass; 2.15 aborts if one does
        so during exit. A real card takes long enough, this one does not."""
        if torch.cuda.is_initialized():
            time.sleep(0.1)

    def values_library(self, torch):
        """The library written against PyTorch's dispatcher, compiled once per wheel."""
        path = os.path.join(self.folder, VALUES)
        if loads(path):
            return path
        compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            say("found no C++ compiler, so values of small tensors are not computed and decisions that depend on them may be "
                "wrong (install g++)")
            return None
        if not os.access(self.folder, os.W_OK):
            say("values of small tensors are not computed: cannot write to %s" % self.folder)
            return None
        with open(path + ".lock", "w") as lock:  # one rank compiles for all
            fcntl.flock(lock, fcntl.LOCK_EX)
            return path if loads(path) else self.compile_values(torch, path, compiler)

    def compile_values(self, torch, path, compiler):
        say("first use with torch %s: compiling the library that computes small values (10 to 20 s)" % torch.__version__)
        include = os.path.join(self.package, "include")
        library = os.path.join(self.package, "lib")
        temp = "%s.%d" % (path, os.getpid())
        command = [compiler, "-O1", "-std=c++20" if release_of(torch) >= (2, 12) else "-std=c++17", "-fPIC", "-shared", "-fno-math-errno",
                   "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi(), "-I" + include,
                   "-I" + os.path.join(include, "torch", "csrc", "api", "include"),
                   os.path.join(self.home, "values", "values.cpp"), "-o", temp, "-L" + library, "-lc10", "-ltorch_cpu",
                   "-ldl", "-Wl,--unresolved-symbols=ignore-all"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={k: v for k, v in os.environ.items() if not k.startswith(("CUFRAG_", "PYTHON"))})
        if result.returncode:
            log = path + ".log"
            with open(log, "wb") as f:
                f.write(result.stdout)
            say("values of small tensors are not computed: the compiler failed, see %s" % log)
            return None
        os.replace(temp, path)
        return path

    def start_values(self, torch, path, mode):
        import threading
        lib = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)  # RTLD_GLOBAL would put torch's libstdc++ before that of others
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_double))
        self.callback = callback(self.steer)
        self.read_overrides(mode)
        operators = os.path.join(self.home, "values", "operators.csv")
        lib.cufrag_values_roof(*self.roof())
        lib.cufrag_values_start.restype = ctypes.c_bool
        if not lib.cufrag_values_start(self.core.encode(), operators.encode(), mode.encode(),
                                       ctypes.c_ulonglong(int(os.environ.get("CUFRAG_NOGPU_SEED", "1"))), self.callback):
            raise OSError("cannot read %s" % operators)
        self.values = lib
        lib.cufrag_values_parts(ctypes.c_void_p(torch.UntypedStorage(2)[1:]._cdata))
        After("triton.runtime.jit", lambda jit: self.watch_triton(torch, jit), STALE % "a kernel of Triton writes")
        After("triton.compiler.compiler", lambda compiler: self.watch_triton_compiled(torch, compiler), STALE % "a compiled kernel of Triton writes")
        for package in "torch._inductor.runtime", "torch._inductor":  # the second: up to PyTorch 2.3
            After(package + ".triton_heuristics", lambda heuristics: self.watch_inductor_kernels(torch, heuristics), STALE % "a kernel of compiled code writes")
        After("torch._inductor.codecache", lambda _: self.watch_inductor(torch), STALE % "compiled code makes")
        hide_key(torch, lib)
        # the switch is per thread; autograd's own threads inherit it
        original = threading.Thread.start

        def start(thread, *args, **kwargs):
            run = thread.run

            def run_with_values():
                lib.cufrag_values_thread(1)
                run()
            thread.run = run_with_values
            return original(thread, *args, **kwargs)
        threading.Thread.start = start

    def watch_triton(self, torch, jit):
        """Triton kernels bypass the dispatcher, so mark what they write as unknown."""
        import cufrag_stores

        def watched(launch, *of):  # of: the kernel, if it is not the first argument
            def run(*args, **kwargs):
                kernel, *given = *of, *args
                if not kwargs.get("warmup"):
                    self.forget(cufrag_stores.written, torch, kernel, given, kwargs)
                return launch(*args, **kwargs)
            return run
        if hasattr(jit.JITFunction, "run"):
            jit.JITFunction.run = watched(jit.JITFunction.run)
            return
        make = jit.JITFunction._make_launcher  # Triton 2.1: one per kernel
        jit.JITFunction._make_launcher = lambda kernel: watched(make(kernel), kernel)

    def watch_triton_compiled(self, torch, compiler):
        """The same for kernels that the program compiled ahead of the launch."""
        import cufrag_stores
        launcher = compiler.CompiledKernel.__getitem__

        def launcher_of(kernel, grid):
            launch = launcher(kernel, grid)

            def run(*args, **kwargs):
                self.forget(cufrag_stores.written_compiled, torch, kernel, args)
                return launch(*args, **kwargs)
            return run
        compiler.CompiledKernel.__getitem__ = launcher_of

    def watch_inductor_kernels(self, torch, heuristics):
        """Triton kernels with a launch function of their own."""
        import cufrag_stores
        launch = heuristics.CachingAutotuner.run

        def run(kernel, *args, **kwargs):
            self.forget(cufrag_stores.written_by_inductor, torch, kernel, args)
            return launch(kernel, *args, **kwargs)
        heuristics.CachingAutotuner.run = run

    def forget(self, find, torch, *given):
        """Marks the tensors that `find` finds in a launch; its internals differ between
        releases."""
        for t in attach(STALE % "a kernel of Triton writes", find, torch, *given) or ():
            self.values.cufrag_values_unknown(storage_of(torch, t))

    def watch_inductor(self, torch):
        """Compiled code allocates without an operator and writes by kernels: its results are
        unknown, not stale values."""
        guards, unknown = torch._C._dynamo.guards, self.values.cufrag_values_unknown
        if release_of(torch) < (2, 3) and not hasattr(guards, "_empty_strided_cuda"):  # allocates by an operator
            return
        make = guards._empty_strided_cuda

        def empty_strided_cuda(*args):
            made = make(*args)
            unknown(storage_of(torch, made))
            return made
        guards._empty_strided_cuda = empty_strided_cuda

    def read_overrides(self, mode):
        """A file of lines "PLACE VALUE...": successive results of .item() at PLACE, such as
        train.py:42; the last one repeats."""
        self.overrides = {}
        self.rules = mode not in ("zeros", "random")
        if mode in ("rules", "computed", "zeros", "random", "worst") or mode.startswith("skewed="):
            return
        with open(mode, errors="surrogateescape") as f:
            for line in f:
                words = line.split("#")[0].split()
                if len(words) > 1:
                    self.overrides[words[0]] = [float(word) for word in words[1:]]

    def steer(self, what, invented, value):
        """A value of the card reached the program: counts by place, and whether it was computed."""
        place = self.place()
        told = self.overrides.get(place, self.overrides.get(os.path.basename(place)))
        given = told and (told.pop(0) if len(told) > 1 else told[0])
        key = (place, "found_inf" if of_the_scaler() else what.decode(), "given" if told else "invented" if invented else "computed")
        self.steered[key] = self.steered.get(key, 0) + 1
        if given is None and invented and self.rules:
            given = self.searched()
            if given is None:
                given = self.waited(value[0])
        if given is None:
            return 0
        value[0] = given
        return 1

    @staticmethod
    def called_back(frame):
        """True below steer(), which C calls and where exceptions are lost, so a process cannot be
        ended there."""
        while frame and frame.f_code is not Card.steer.__code__:
            frame = frame.f_back
        return frame is not None

    def searched(self):
        """What torch.optim.LBFGS reads in a successful line search, else None. With invented values
        it would stop at once: losses are equal, and slopes may be uphill. Here the loss falls,
        slope and curvature have the right sign, Wolfe's condition holds, and no tolerance is
        reached."""
        frame = asker()
        if not frame or frame.f_code.co_filename != os.path.join(self.package, "optim", "lbfgs.py"):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if "float(" in line:
            self.losses += 1
            return 1 - 1e-3 * self.losses
        return float("1e-10" in line or "-c2" in line) if line.startswith(("if ", "elif ")) else None

    def waited(self, value):
        return self.loops.end(asker(), value)

    def place(self):
        """The innermost line of the user's code, else of a package other than torch, else the
        innermost line."""
        frame = inner = asker()
        if not frame:
            return "backward pass"
        package = None
        while frame:
            name = frame.f_code.co_filename
            installed = "site-packages" in name or name.startswith(SCRIPTS)
            generated = name.startswith("<") and frame.f_globals.get("__name__") != "__main__"  # excludes python -c
            if not generated and not name.startswith((self.package, HERE)) and (installed or not name.startswith(STANDARD)):
                if not installed:
                    return "%s:%d" % (name[len(STARTED):] if name.startswith(STARTED) else name, frame.f_lineno)
                package = package or frame
            frame = frame.f_back
        inner = package or inner
        return "%s:%d" % (inner.f_code.co_filename, inner.f_lineno)

    def write_clock(self, path):
        if self.values and os.environ.get("CUFRAG_NOGPU_ROOF"):
            self.values.cufrag_values_clock(path.encode())

    def notes(self):
        places = [{"place": k[0].encode("utf-8", "replace").decode(), "what": k[1], "values": k[2], "count": n} for k, n in self.steered.items()]
        ns = (ctypes.c_double * 2)()
        if self.values:
            self.values.cufrag_values_recomputed(ns)
        return {"convolutions": convolutions(ctypes.CDLL(self.core).frag_nogpu_conv_planner()), "recomputed_ns": int(ns[0]), "model_ns": int(ns[1]), "nogpu": os.environ.get("CUFRAG_NOGPU", ""), "values": os.environ.get("CUFRAG_NOGPU_VALUES", "rules")
                if self.values else "none", "steered": places}


def convolutions(version):
    """How their workspaces were found, where not as those of an H200. version: of the cuDNN that planned (90100), or below 0 that of the program's, by rule;
    0: there were none."""
    with open(os.path.join(HERE, "cufrag_trees.csv"), encoding="ascii") as f:
        known = ".".join(f.readline().split(",")[0].removeprefix("cuDNN ").split(".")[:2])
    number = abs(version) // 100
    release = "%d.%d" % divmod(number, 100 if number >= 900 else 10)
    if version and release != known:
        return "convolutions planned by cuDNN %s; workspaces of an H200 are known for %s" % (release, known)
    return "convolutions planned by rule, as cuDNN %s was not found beside PyTorch" % release if version < 0 else ""


def of_the_scaler():
    """Is torch.amp.GradScaler checking for overflow, to skip the step?"""
    frame = asker()
    return frame is not None and frame.f_code.co_filename.endswith("grad_scaler.py") and frame.f_code.co_name in ("<genexpr>", "_maybe_opt_step")


class After:
    """Calls a function with a module once it is loaded, now or later. purpose: as for `attach`."""

    def __init__(self, name, then, purpose):
        self.name, self.then, self.purpose, self.busy = name, then, purpose, False
        if name in sys.modules:
            attach(purpose, then, sys.modules[name])
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.busy:
            return None
        self.busy = True
        spec = importlib.util.find_spec(name)
        self.busy = False
        if spec and spec.loader:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                attach(self.purpose, self.then, module)
            spec.loader.exec_module = exec_module
        return spec


def storage_of(torch, t):
    """For the library of values. A Python storage object would be a second owner, so gradients would
    not be accumulated in place."""
    return ctypes.c_void_p(torch._C._storage_id(t) if hasattr(torch._C, "_storage_id") else t.untyped_storage()._cdata)


def asker():
    """The caller's caller."""
    try:
        return sys._getframe(3)
    except ValueError:  # in autograd's own thread
        return None


def loads(library):
    """False: missing or truncated."""
    try:
        ctypes.CDLL(library, mode=ctypes.RTLD_LOCAL)
        return True
    except OSError:
        return False


def hide_key(torch, lib):
    """Python does not know the dispatch key of values/: removes it from the keys of
    higher-order operators, which Python dispatches."""
    keys, original = getattr(torch._C, "_dispatch_tls_local_include_set", None), getattr(torch._ops, "_compute_keyset", None)
    if not keys or not original:
        switch_off_within(torch._ops.HigherOrderOperator, torch, lib)
        lib.cufrag_values_thread(1)
        return
    before = keys()
    lib.cufrag_values_thread(1)
    mine = keys() - before

    def compute_keyset(*args):
        return original(*args) - mine
    torch._ops._compute_keyset = compute_keyset


def switch_off_within(operator, torch, lib):
    """If keys cannot be removed: such operators compute no values, and their results are marked
    unknown."""
    call = operator.__call__

    def call_without(*args, **kwargs):
        lib.cufrag_values_thread(0)
        try:
            given = call(*args, **kwargs)
        finally:
            lib.cufrag_values_thread(1)
        for t in given if isinstance(given, (tuple, list)) else [given]:
            if type(t) is torch.Tensor and t.is_cuda:
                lib.cufrag_values_unknown(storage_of(torch, t))
        return given
    operator.__call__ = call_without


HERE = os.path.dirname(os.path.abspath(__file__))
STARTED = os.path.join(os.getcwd(), "")
STANDARD = sysconfig.get_paths()["stdlib"]
SCRIPTS = os.path.join(sysconfig.get_paths()["scripts"], "")  # entry points of packages


STALE = "what tells that what %s is not computed, so decisions that depend on it may be wrong"


def release_of(torch):
    version = torch.__version__.split(".")
    return int(version[0]), int(version[1])
