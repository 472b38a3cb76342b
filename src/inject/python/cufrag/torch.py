# SPDX-License-Identifier: Apache-2.0
"""A policy of cufrag as the allocator of this process's PyTorch.

    import cufrag.torch
    cufrag.torch.use("vmm")          # before anything uses CUDA

Without a change of the program: `cufrag run --policy vmm -- python train.py`. The work is done by
libcufrag_torch.so (src/inject/live/live.h); here it is loaded and put in.
"""
import atexit
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, Optional

from . import answers, stats

LIBRARY = "libcufrag_torch.so"
ABI = 3
HERE = os.path.dirname(os.path.abspath(__file__))


class Options(ctypes.Structure):
    """struct frag_live_options"""
    _fields_ = [("size", ctypes.c_uint64), ("policy", ctypes.c_char_p), ("limit_bytes", ctypes.c_uint64),
                ("record", ctypes.c_char_p), ("seed", ctypes.c_uint64), ("torch_release", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


_library = None
_path = None
_log = None  # the recording, where there is one
_keep: list = []  # what PyTorch holds pointers into


def library_path() -> str:
    """Beside this file, in the folder above (cufrag run), in the folder for programs (a wheel), or what CUFRAG_TORCH_LIBRARY names."""
    for path in (os.environ.get("CUFRAG_TORCH_LIBRARY"), os.path.join(HERE, LIBRARY),
                 os.path.join(os.path.dirname(HERE), LIBRARY), os.path.join(HERE, "share", "cufrag", "inject", LIBRARY)):
        if path and os.path.exists(path):
            return path
    raise RuntimeError("cufrag: %s is not there; set CUFRAG_TORCH_LIBRARY to where it was built" % LIBRARY)


def library():
    """The C library, loaded once."""
    global _library, _path
    if _library is None:
        path = library_path()
        lib = ctypes.CDLL(path)
        if lib.frag_live_abi() != ABI:
            raise RuntimeError("cufrag: %s is of another version than this package" % path)
        lib.frag_live_policy.restype = ctypes.c_char_p
        _library, _path = lib, path
    return _library


def policy() -> Optional[str]:
    """The policy in use, as it was understood; None: PyTorch's own allocator is."""
    text = library().frag_live_policy().decode() if _library else ""
    return text or None


def release_of(version):
    """211 for "2.11.0+cu130"; 0 where it cannot be told."""
    parts = version.split("+")[0].split(".")
    try:
        return int(parts[0]) * 100 + int(parts[1])
    except (IndexError, ValueError):
        return 0


def address(name):
    return ctypes.cast(getattr(_library, name), ctypes.c_void_p).value


class GraphsWithoutTrees:
    """In sys.meta_path. Inductor's trees of graphs ask PyTorch's own allocator, in C++, for checkpoints; without trees it captures as well."""

    def find_spec(self, name, path=None, _target=None):
        if name != "torch._inductor.config":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        body = spec.loader.exec_module

        def run(module):
            body(module)
            leave_out_trees(module)
        spec.loader.exec_module = run
        return spec


def leave_out_trees(config):
    try:
        config.triton.cudagraph_trees = False
    except AttributeError:  # a release without them
        pass


def capture_without_trees():
    config = sys.modules.get("torch._inductor.config")
    if config:
        leave_out_trees(config)
    else:
        sys.meta_path.insert(0, GraphsWithoutTrees())


def put_in(torch):
    """PyTorch's allocator is the library's from now on."""
    memory = torch.cuda.memory
    wrapped = memory.CUDAPluggableAllocator(_path, "frag_live_alloc", "frag_live_free")
    inner = wrapped.allocator()
    hooks = {"set_reset_fn": "frag_live_reset",
             "set_memory_fraction_fn": "frag_live_fraction", "set_base_alloc_fn": "frag_live_base",
             "set_record_stream_fn": "frag_live_record_stream", "set_release_pool": "frag_live_release_pool"}
    if hasattr(inner, "set_begin_allocate_stream_to_pool"):  # 2.1, 2.2
        hooks["set_begin_allocate_stream_to_pool"] = "frag_live_begin_stream"
        hooks["set_end_allocate_stream_to_pool_fn"] = "frag_live_end_stream"
    else:
        hooks["set_begin_allocate_to_pool"] = "frag_live_begin_pool"
        hooks["set_end_allocate_to_pool_fn"] = "frag_live_end_pool"
    for setter, name in hooks.items():
        getattr(inner, setter)(address(name))
    _library.frag_live_answer_cache_info()
    memory.change_current_allocator(wrapped)
    _keep.extend((wrapped, inner))
    answers.put_in(torch, _library, release_of(torch.__version__))
    capture_without_trees()


def use(policy: str, record: Optional[str] = None, limit: Optional[int] = None, seed: int = 1) -> None:
    """Puts `policy` in, as a text of the command line ("vmm", "pytorch:expandable_segments:True", "limit:bytes=8G/tlsf").

    record: file for the recording of all requests, a .cft (or .csv); it can be read while it is written.
    limit: most bytes that may be reserved on each device. Call it before anything uses CUDA.
    """
    global _log
    import torch
    if torch.cuda.is_initialized():
        raise RuntimeError("cufrag: CUDA is in use already; call cufrag.torch.use before anything uses it")
    lib = library()
    record = os.path.abspath(record) if record else None
    options = Options(size=ctypes.sizeof(Options), policy=policy.encode(), limit_bytes=int(limit or 0),
                      record=record.encode() if record else None, seed=seed, torch_release=release_of(torch.__version__))
    text = ctypes.create_string_buffer(512)
    if lib.frag_live_start(ctypes.byref(options), text, len(text)):
        raise RuntimeError("cufrag: " + text.value.decode(errors="replace"))
    put_in(torch)
    _log = record
    if record:
        atexit.register(finish, os.getpid(), record)
        for name in ("_exit", "abort", "execv", "execve"):
            flush_before(name)


def flush_before(name):
    """What ends a program without its exit handlers."""
    original = getattr(os, name)

    def end(*args, **kwargs):
        library().frag_live_flush()
        return original(*args, **kwargs)
    setattr(os, name, end)


def finish(pid, record):
    """The recording of a process that ends becomes a .cft of the usual size, if the program is at hand."""
    if os.getpid() != pid:
        return
    library().frag_live_flush()
    if record.endswith(".csv") or os.environ.get("CUFRAG_RUN_FOLDER"):  # cufrag run gathers them itself
        return
    small = "%s.%d" % (record, pid)
    if import_log(record, small):
        os.replace(small, record)


def import_log(log, record):
    """Makes a .cft of a log, by the program; False where that is not at hand, or says no."""
    program = os.path.join(HERE, "cufrag")
    program = program if os.path.exists(program) else shutil.which("cufrag")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUFRAG_")}
    return bool(program) and subprocess.run([program, "import", log, "-o", record], env=environment,
                                            stdout=subprocess.DEVNULL, check=False).returncode == 0


def use_environment():
    """What `cufrag run` asks for: CUFRAG_RUN, CUFRAG_RUN_LIMIT, CUFRAG_RUN_FOLDER (for recordings), CUFRAG_RUN_SEED."""
    import torch
    if not torch.version.cuda:
        print("cufrag run: this PyTorch is built without CUDA, so the policy is not in use", file=sys.stderr)
        return
    folder = os.environ.get("CUFRAG_RUN_FOLDER")
    record = os.path.join(folder, "live.%d.cft" % os.getpid()) if folder else None
    number = 0
    while record and os.path.exists(record):  # of the program that this process was before (exec)
        number += 1
        record = os.path.join(folder, "live.%d.next%d.cft" % (os.getpid(), number))
    try:
        use(os.environ["CUFRAG_RUN"], record=record, limit=os.environ.get("CUFRAG_RUN_LIMIT"),
            seed=int(os.environ.get("CUFRAG_RUN_SEED", "1")))
    except (RuntimeError, AttributeError) as error:
        # fail loudly: the policy is not in use; AttributeError: other names in this release
        print("cufrag run: %s" % error, file=sys.stderr, flush=True)
        os._exit(4)


def need():
    if not policy():
        raise RuntimeError("cufrag: no policy is in use; call cufrag.torch.use first")
    import torch
    return torch


def memory_stats(device: Any = None) -> Dict[str, Any]:
    """torch.cuda.memory_stats of this release, from the policy in use."""
    return need().cuda.memory_stats(device)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    return need().cuda.memory_summary(device, abbreviated)


def snapshot() -> Dict[str, Any]:
    """torch.cuda.memory._snapshot(): segments, their blocks, and the history where it is recorded."""
    return need().cuda.memory._snapshot()


def reset_peak_memory_stats(device: Any = None) -> None:
    need().cuda.reset_peak_memory_stats(device)


def driver_calls(device: Any = None) -> Dict[str, Dict[str, int]]:
    """{name: {count, failed, bytes, ns}} of the calls into the driver, and what the policy counts."""
    return stats.calls(library(), answers.index_of(need(), device))


def counters(device: Any = None) -> Dict[str, int]:
    """The policy's own statistics, by name."""
    return stats.counters(library(), answers.index_of(need(), device))


def recording(path: str) -> None:
    """Writes what was recorded until now as a .cft, while the program runs (use(record=…) began it)."""
    need()
    if not _log:
        raise RuntimeError("cufrag: nothing is recorded; use(policy, record='run.cft') does")
    library().frag_live_flush()
    if not import_log(_log, os.path.abspath(path)):
        raise RuntimeError("cufrag: %s could not be made of %s" % (path, _log))
