# SPDX-License-Identifier: Apache-2.0
"""The library that computes values of small tensors, and marks the others as unknown.

It is written against PyTorch's dispatcher (values/), and compiled once per wheel.
"""
import ctypes
import fcntl
import os
import shutil
import subprocess

import cufrag_protocol as protocol
import cufrag_steer
from cufrag_hooks import release_of
from cufrag_recorder import attach, say

LIBRARY = "cufrag_values.so"


def library(card, torch):
    """Its path; None: it cannot be made."""
    path = os.path.join(card.folder, LIBRARY)
    if loads(path):
        return path
    compilers = os.environ.get("CXX", "c++"), "g++", "clang++"
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if not compiler:
        say("found no C++ compiler, so values of small tensors are not computed and decisions that "
            "depend on them may be wrong (install g++)")
        return None
    if not os.access(card.folder, os.W_OK):
        say("values of small tensors are not computed: cannot write to %s" % card.folder)
        return None
    with open(path + ".lock", "w") as lock:  # one rank compiles for all
        fcntl.flock(lock, fcntl.LOCK_EX)
        return path if loads(path) else make(card, torch, path, compiler)


def loads(path):
    """False: missing or truncated."""
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
        return True
    except OSError:
        return False


def make(card, torch, path, compiler):
    say("first use with torch %s: compiling the library that computes small values (10 to 20 s)" % torch.__version__)
    include = os.path.join(card.package, "include")
    temp = "%s.%d" % (path, os.getpid())
    standard = "c++20" if release_of(torch) >= (2, 12) else "c++17"
    command = [compiler, "-O1", "-std=" + standard, "-fPIC", "-shared", "-fno-math-errno",
               "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi(), "-I" + include,
               "-I" + os.path.join(include, "torch", "csrc", "api", "include"),
               os.path.join(card.home, "values", "values.cpp"), card.core, "-o", temp,
               "-L" + os.path.join(card.package, "lib"), "-lc10", "-ltorch_cpu", "-ldl",
               "-Wl,--unresolved-symbols=ignore-all"]
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


class Values:
    def __init__(self, card, torch, path):
        self.torch, mode = torch, protocol.PRETEND_VALUES
        # RTLD_GLOBAL would put torch's libstdc++ before that of others
        self.library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
        self.steer = cufrag_steer.Steer(mode, card.package)
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_double))
        self.callback = callback(self.steer)
        operators = os.path.join(card.home, "values", "operators.csv")
        self.begin()
        self.library.cufrag_values_start.restype = ctypes.c_bool
        if not self.library.cufrag_values_start(operators.encode(), mode.encode(), ctypes.c_ulonglong(protocol.PRETEND_SEED), self.callback):
            raise OSError("cannot read %s" % operators)
        self.library.cufrag_values_parts(ctypes.c_void_p(torch.UntypedStorage(2)[1:]._cdata))

    def switch(self, on):
        """In this thread."""
        self.library.cufrag_values_thread(int(on))

    def begin(self):
        """In a fork."""
        rates = protocol.PRETEND_ROOF.split(",")
        self.library.cufrag_values_roof(*(ctypes.c_double(float(n)) for n in rates))

    def unknown(self, t):
        """Marks it. A Python storage object would be a second owner, so gradients would not be
        accumulated in place."""
        storage_id = getattr(self.torch._C, "_storage_id", None)
        self.library.cufrag_values_unknown(ctypes.c_void_p(storage_id(t) if storage_id else t.untyped_storage()._cdata))

    def forget(self, purpose, find, *given):
        """Marks the tensors that `find` finds in a launch; its internals differ between
        releases."""
        for t in attach(purpose, find, self.torch, *given) or ():
            self.unknown(t)

    def write_clock(self, path):
        if protocol.PRETEND_ROOF != "0,0,0":
            self.library.cufrag_values_clock(path.encode())

    def notes(self):
        ns = (ctypes.c_double * 2)()
        self.library.cufrag_values_recomputed(ns)
        return {"recomputed_ns": int(ns[0]), "model_ns": int(ns[1]), "values": protocol.PRETEND_VALUES, "steered": [
            {"place": at.encode("utf-8", "replace").decode(), "what": what, "values": values, "count": n}
            for (at, what, values), n in self.steer.counts.items()]}
