# SPDX-License-Identifier: Apache-2.0
"""torch.compile measures the kernels that it made, with buffers of the size of the L2 cache: how often hangs on what its caches hold, and on
which process compiles. Here both are as in a first run on a card, so that two recordings of a program are alike.

The caches of Inductor are empty when a program begins, one for each rank: on a card all ranks compile at the same time. Those with code
alone, of Triton, stay. With `--warm-caches`, Inductor's stay, too.

Inductor's processes compile once they are ready; before, the program itself does. What was compiled twice there, for two graphs, is
measured twice; a process finds the first result. On hosts of H200s they are ready 8.2 s after they were asked for (five programs: 7.4 to
8.9 s), 2.8 times what loading PyTorch took. Here they compete with the program for few processors, so it is the program's own
processor time that counts.
"""
import contextlib
import glob
import os
import threading
import time

READY = 2.8


def begin_cold(caches):
    """caches: folders by the variables that name them. Called before torch is loaded, and in a fork of a process that has loaded it."""
    cold = os.environ.get("CUFRAG_NOGPU_COMPILED")
    if not cold:
        return
    try:
        os.makedirs(cold)
    except FileExistsError:  # not the first process of the recording
        pass
    else:
        for path in glob.glob(os.path.join(caches["TRITON_CACHE_DIR"], "*", "*.autotune.json")):  # what a kernel's own tuning found
            with contextlib.suppress(FileNotFoundError):  # another recording did it
                os.unlink(path)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cold, os.environ.get("RANK", "0"))


class Pool:
    """Inductor's processes, for a program whose torch took `load_s` seconds of the processor to load."""

    def __init__(self, load_s):
        self.wait_s = READY * load_s
        self.asked = self.asked_s = None

    def watch(self, module):
        """async_compile of PyTorch 2.6 and newer; those before had no such rule."""
        pools = module.AsyncCompile
        if not hasattr(pools, "_ready_future"):
            return
        really = pools.use_process_pool

        def use_process_pool():
            used = really()
            asked = pools._ready_future
            if not asked:  # the program itself always compiles
                return used
            if self.asked is not asked:  # forks ask for their own
                self.asked, self.asked_s = asked, self.spent_s()
            if self.spent_s() - self.asked_s < self.wait_s:
                return False
            asked.result()
            return True
        pools.use_process_pool = staticmethod(use_process_pool)

    @staticmethod
    def spent_s():
        """By the main thread and, where another one asks, by that: backward passes are compiled in their own."""
        main = threading.main_thread()
        spent = time.clock_gettime(time.pthread_getcpuclockid(main.ident))
        return spent if threading.current_thread() is main else spent + time.thread_time()


def forget_between(tasks):
    """In a process that compiles: what it compiled before it would find unmeasured. A host has up to 32 of them, and it is another one's turn."""
    compiling = tasks._worker_compile_triton

    def compile_triton(*args):
        from torch._inductor.codecache import PyCodeCache
        PyCodeCache.cache_clear()
        return compiling(*args)
    compile_triton.__module__, compile_triton.__qualname__ = compiling.__module__, compiling.__qualname__  # it is sent by its name
    tasks._worker_compile_triton = compile_triton
