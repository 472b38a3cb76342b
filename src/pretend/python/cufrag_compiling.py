# SPDX-License-Identifier: Apache-2.0
"""Compiling as on a card's first run, so that two recordings of a program agree: torch.compile
benchmarks its kernels with buffers of the size of the L2 cache, and the number of measurements
depends on the caches and on which process compiles.

Inductor's caches are empty at the start, one per rank, because on a card all ranks compile at the
same time. Triton's code cache is kept, and with `--warm-caches` Inductor's, too.

Inductor's worker processes compile once they are ready; before, the program itself does. Kernels
compiled twice there, for two graphs, are measured twice; a worker finds the first result. On hosts
of H200s, workers were ready 8.2 s after the request (five programs: 7.4 to 8.9 s), 2.8 times the
time to load PyTorch. Here they compete with the program for few processors, so the program's own
processor time counts.
"""
import contextlib
import glob
import os
import threading
import time

READY = 2.8


def begin_cold(caches):
    """caches: folders by environment variable. Call before torch is loaded, and in a fork of a
    process that has loaded it."""
    cold = os.environ.get("CUFRAG_NOGPU_COMPILED")
    if not cold:
        return
    try:
        os.makedirs(cold)
    except FileExistsError:  # another process of the recording was first
        pass
    else:
        for path in glob.glob(os.path.join(caches["TRITON_CACHE_DIR"], "*", "*.autotune.json")):  # autotuned
            with contextlib.suppress(FileNotFoundError):  # deleted by another recording
                os.unlink(path)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cold, os.environ.get("RANK", "0"))


class Pool:
    """Inductor's worker processes, for a program that took `load_s` seconds of processor time to
    load torch."""

    def __init__(self, load_s):
        self.wait_s = READY * load_s
        self.asked = self.asked_s = None

    def watch(self, module):
        """PyTorch 2.6 and newer; earlier ones do not wait for workers."""
        pools = module.AsyncCompile
        if not hasattr(pools, "_ready_future"):
            return
        really = pools.use_process_pool

        def use_process_pool():
            used = really()
            asked = pools._ready_future
            if not asked:  # no workers
                return used
            if self.asked is not asked:  # forks have workers of their own
                self.asked, self.asked_s = asked, self.spent_s()
            if self.spent_s() - self.asked_s < self.wait_s:
                return False
            asked.result()
            return True
        pools.use_process_pool = staticmethod(use_process_pool)

    @staticmethod
    def spent_s():
        """Processor time of the main thread, plus this one: backward passes are compiled in their
        own thread."""
        main = threading.main_thread()
        spent = time.clock_gettime(time.pthread_getcpuclockid(main.ident))
        return spent if threading.current_thread() is main else spent + time.thread_time()


def forget_between(tasks):
    """In a worker: clears compiled kernels, so that none is found unmeasured. A host has up to 32
    workers, so the next task mostly goes to another one."""
    compiling = tasks._worker_compile_triton

    def compile_triton(*args):
        from torch._inductor.codecache import PyCodeCache
        PyCodeCache.cache_clear()
        return compiling(*args)
    compile_triton.__module__, compile_triton.__qualname__ = compiling.__module__, compiling.__qualname__  # for pickle
    tasks._worker_compile_triton = compile_triton
