# SPDX-License-Identifier: Apache-2.0
"""The library of the pretended card, and processes that load it."""
import ctypes
import os
import pickle
import re
import subprocess
import sys

PATH = os.path.abspath(os.path.join(sys.argv[1], "../../libcufrag_pretend.so"))
TABLE = subprocess.run(["nm", PATH], capture_output=True, check=True, text=True).stdout
# address in the file of its functions, also of those that are not exported
SYMBOLS = {name: int(at, 16) for at, name in re.findall(r"(?m)^(\w+) [tT] (\w+)$", TABLE)}
SANITIZED = "__asan_init" in TABLE
if SANITIZED and "LD_PRELOAD" not in os.environ:  # it has to be loaded before Python
    with open(PATH, "rb") as of:
        runtime = re.search(rb"libasan\.so[.\d]*", of.read())
    runtime = runtime[0].decode() if runtime else subprocess.run(
        ["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, check=True,
        text=True).stdout.strip()
    os.execve(sys.executable, [sys.executable, *sys.argv],
              {**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"})


class Library:
    def __init__(self):
        self.library, self.libc, self.found = ctypes.CDLL(PATH), ctypes.CDLL(None), {}
        start = ctypes.cast(self.library.frag_pretend_nothing, ctypes.c_void_p).value
        self.base = start - SYMBOLS["frag_pretend_nothing"]

    def find(self, name):
        """An entry, another function of the card's, or one of the C library; None: none."""
        if name not in self.found:
            at = SYMBOLS.get(("frag_pretend" if name[0] == "1" else "frag_pretend_") + name)
            at = at or SYMBOLS.get(name)
            entry = ctypes.CFUNCTYPE(ctypes.c_uint64)(self.base + at) if at else \
                getattr(self.libc, name, None)
            if entry and not at:
                entry.restype = ctypes.c_uint64
            self.found[name] = entry
        return self.found[name]


def in_a_process(run, *words):
    """Runs it in a process of its own; the function that waits for what it returns."""
    ends = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            said = run(*words)
        except Exception as wrong:  # pylint: disable=broad-except
            said = wrong
        os.write(ends[1], pickle.dumps(said))
        os._exit(0)
    os.close(ends[1])

    def wait():
        with os.fdopen(ends[0], "rb") as file:
            text = file.read()
        status = os.waitpid(pid, 0)[1]
        assert text, f"it ended with status {status}"
        said = pickle.loads(text)
        if isinstance(said, Exception):
            raise said
        return said

    return wait
