# SPDX-License-Identifier: Apache-2.0
"""The pretended card inside a Python process that imports torch: libraries that stand for CUDA's,
made for this torch and loaded in front of it; then values and hooks."""
import atexit
import ctypes
import hashlib
import importlib.machinery
import importlib.metadata
import os
import shutil
import sys
import tempfile
import time
import traceback

import cufrag_hooks
import cufrag_protocol as protocol
import cufrag_steer
import cufrag_stubs
from cufrag_hooks import inductor
from cufrag_recorder import attach

HERE = os.path.dirname(os.path.abspath(__file__))
CORE = "libcufrag_pretend.so"
# Caches of packages: kernels (empty here), timings, capabilities of cards. A real card must not use
# them, so they are in folders of their own beside the libraries.
CACHES = {"CUPY_CACHE_DIR": "cupy", "DG_JIT_CACHE_DIR": "deep_gemm", "NUMBA_CACHE_DIR": "numba",
          "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "VLLM_CACHE_ROOT": "vllm"}


class Card:
    def __init__(self, package):
        self.package, self.home, self.values = package, protocol.PRETEND_HOME, None
        self.core = os.path.join(self.home, CORE)
        self.folder = os.path.join(protocol.PRETEND_CACHE, self.key())
        self.caches = {name: os.path.join(self.folder, folder) for name, folder in CACHES.items()}

    def key(self):
        """Of the wheel, of packages beside it, and of this version of the pretended card."""
        h = hashlib.sha256(self.home.encode())
        libraries = os.path.join(self.package, "lib")
        names = sorted(name for name in os.listdir(libraries) if ".so" in name)
        for path in [os.path.join(libraries, n) for n in names] + cufrag_stubs.wheels(libraries):
            state = os.stat(path)
            h.update(("%s %d %d\n" % (path, state.st_size, state.st_mtime_ns)).encode())
        h.update(self.package.encode())
        return h.hexdigest()[:24]

    def library(self):
        return ctypes.CDLL(self.core)

    # ---- before torch

    def before(self):
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
        os.environ.update(self.caches, TRITON_LIBCUDA_PATH=self.folder, USE_PYTORCH_KERNEL_CACHE="0",
                          LD_LIBRARY_PATH=os.pathsep.join([self.folder] + self.search_path()))
        inductor.begin_cold(self.caches)
        self.load_s = -time.process_time()

    def search_path(self):
        path = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        return [p for p in path if p and p != self.folder]

    def offer_planner(self):
        """Path of the user's cuDNN, to plan convolutions (cufrag_planner.py): beside torch, or the
        system's."""
        folders = [os.path.join(os.path.dirname(self.package), "nvidia", "cudnn", "lib"), os.path.join(self.package, "lib"),
                   *self.search_path(), os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64",
                   "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu"]
        found = [p for p in (f + "/libcudnn.so.9" for f in folders) if os.path.exists(p)]
        if found and sys.executable:
            os.environ["CUFRAG_PRETEND_PLANNER"] = "\n".join([sys.executable, os.path.join(HERE, "cufrag_planner.py"), found[0]])
            os.environ["CUFRAG_PRETEND_PLANNER_PATH"] = os.pathsep.join(
                [os.path.join(self.folder, cufrag_stubs.NO_CARD)] + self.search_path())

    def load(self):
        """Loads them in this order: later lookups by name find loaded libraries before any search
        path."""
        with open(os.path.join(self.folder, "libraries")) as f:
            names = f.read().split()
        for path in [self.core] + [os.path.join(self.folder, name) for name in names]:
            ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)

    def make(self):
        """Writes into a new folder and renames it, so that processes do not collide."""
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

    def watch_libraries(self):
        """Patches static CUDA runtimes in the program's own libraries when they are loaded; CUDA's
        own libraries are left alone."""
        import cufrag_static
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

    # ---- after torch

    def after(self, torch):
        self.torch = torch
        self.load_s += time.process_time()
        atexit.register(self.let_threads_rest)
        try:  # PyTorch refuses a cuDNN older than its build
            major, minor, patch = torch._C._cudnn.getCompileVersion()
            major *= 10000 if major > 8 else 1000
            os.environ["CUFRAG_PRETEND_CUDNN"] = str(major + minor * 100 + patch)
        except AttributeError:
            pass
        if protocol.PRETEND_VALUES != "none":
            attach("values of small tensors, so decisions that depend on them may be wrong", self.offer_values)
        cufrag_hooks.begin(self, "card")
        self.play_ranks()
        if protocol.PRETEND_VARIED:
            sys.excepthook = self.fold

    def fold(self, kind, error, trace):
        """One of several runs may run out of memory: a line of the program, no traceback."""
        if not issubclass(kind, self.torch.cuda.OutOfMemoryError):
            return sys.__excepthook__(kind, error, trace)
        frames = traceback.extract_tb(trace)
        at = [f for f in frames if not f.filename.startswith((self.package, HERE))] or frames
        print("%s:%d: %s" % (*at[-1][:2], str(error).partition(" GPU ")[0]), file=sys.stderr)

    def offer_values(self):
        import cufrag_values
        path = cufrag_values.library(self, self.torch)
        if path:
            self.values = cufrag_values.Values(self, self.torch, path)
            cufrag_hooks.begin(self, "values")

    def play_ranks(self):
        if protocol.PRETEND_RANK or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            self.library().frag_pretend_present()
            cufrag_hooks.begin(self, "ranks")

    def fork(self):
        """After a fork: resets the state of this run."""
        self.library().frag_pretend_card_again()
        if self.values:
            self.values.begin()
        self.play_ranks()
        inductor.begin_cold(self.caches)
        atexit.unregister(self.let_threads_rest)  # a fork does not end as Python does

    def let_threads_rest(self):
        """autograd's threads still clean up after the last backward pass, and NCCL's watchdogs look
        every 0.1 s for collectives that are finished; PyTorch aborts if one does so during exit. A
        real card takes long enough. This one does not, and its clock would stand still."""
        if self.torch.cuda.is_initialized():
            distributed = self.torch.distributed
            watched = distributed.is_available() and distributed.is_initialized()
            if watched:
                self.library().frag_pretend_wait_idle()
                self.library().frag_pretend_host_takes(ctypes.c_uint64(100000000))
            time.sleep(0.3 if watched else 0.1)

    is_steering = staticmethod(cufrag_steer.is_steering)

    def place(self):
        """The line of the program that is running."""
        return cufrag_steer.place(sys._getframe(1), self.package)

    def write_clock(self, path):
        if self.values:
            self.values.write_clock(path)

    def notes(self):
        none = {"recomputed_ns": 0, "model_ns": 0, "values": "none", "steered": []}
        core = self.library()
        core.frag_pretend_norms_release.restype = ctypes.c_char_p
        said = convolutions(core.frag_pretend_conv_planner()), norms(core.frag_pretend_norms_release())
        return {"convolutions": "; ".join(filter(None, said)), "pretend": protocol.PRETEND,
                **(self.values.notes() if self.values else none)}


def convolutions(version):
    """How their workspaces were found, where not as those of an H200. version: of the cuDNN that
    planned (90100), or below 0 that of the program's, by rule; 0: there were none."""
    with open(os.path.join(HERE, "cufrag_trees.csv"), encoding="ascii") as f:
        known = ".".join(f.readline().split(",")[0].replace("cuDNN ", "").split(".")[:2])
    number = abs(version) // 100
    release = "%d.%d" % divmod(number, 100 if number >= 900 else 10)
    if version and release != known:
        return "convolutions planned by cuDNN %s; workspaces of an H200 are known for %s" % (release, known)
    return "convolutions planned by rule, as cuDNN %s was not found beside PyTorch" % release if version < 0 else ""


def norms(known):
    """Where another release of Transformer Engine answered. known: b"2.13"; None: none did."""
    if not known:
        return ""
    try:
        found = importlib.metadata.version("transformer_engine")
    except importlib.metadata.PackageNotFoundError:
        found = "of unknown release"
    known = known.decode()
    if (found + ".").startswith(known + "."):
        return ""
    return "norms by Transformer Engine %s; their workspaces on an H200 are known for %s" % (found, known)
