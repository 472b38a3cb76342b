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
import subprocess
import threading
import time

import cufrag_protocol as protocol
import cufrag_stores
from cufrag_hooks import hook

READY = 2.8
WRITES = "what marks what compiled code makes, so decisions that depend on it may be wrong"


def begin_cold(caches):
    """caches: folders by environment variable. Call before torch is loaded, and in a fork of a
    process that has loaded it."""
    cold = protocol.PRETEND_COMPILED
    if not cold:
        return
    try:
        os.makedirs(cold)
    except FileExistsError:  # another process of the recording was first
        pass
    else:
        for path in glob.glob(os.path.join(caches["TRITON_CACHE_DIR"], "*", "*.autotune.json")):
            with contextlib.suppress(FileNotFoundError):  # deleted by another recording
                os.unlink(path)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cold, os.environ.get("RANK", "0"))


@hook("torch._inductor.async_compile", release="torch>=2.6",
      purpose="Inductor's processes as they are on a card's host")
def wait_for_workers(card, module):
    """Earlier releases do not wait for workers."""
    pools = module.AsyncCompile
    really, last = pools.use_process_pool, [None, 0]  # last request, and when it was made

    def use_process_pool():
        used = really()
        asked = pools._ready_future
        if not asked:  # no workers
            return used
        if last[0] is not asked:  # forks have workers of their own
            last[:] = asked, spent_s()
        if spent_s() - last[1] < READY * card.load_s:
            return False
        asked.result()
        return True
    pools.use_process_pool = staticmethod(use_process_pool)


def spent_s():
    """Processor time of the main thread, plus this one: backward passes are compiled in their
    own thread."""
    main = threading.main_thread()
    spent = time.clock_gettime(time.pthread_getcpuclockid(main.ident))
    return spent if threading.current_thread() is main else spent + time.thread_time()


@hook("torch._inductor.compile_worker.subproc_pool", release="torch>=2.4",
      purpose="an end within seconds where processes that compile do not end")
def end_workers(card, compile_worker):
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


@hook("torch._inductor.runtime.compile_tasks", release="torch>=2.4",
      purpose="kernels compiled by another process each time")
def forget_between(card, tasks):
    """In a worker: clears compiled kernels, so that none is found unmeasured. A host has up to 32
    workers, so the next task mostly goes to another one."""
    if os.environ.get("TORCH_WARM_POOL") != "0":
        return
    compiling = tasks._worker_compile_triton

    def compile_triton(*args):
        from torch._inductor.codecache import PyCodeCache
        PyCodeCache.cache_clear()
        return compiling(*args)
    compile_triton.__module__ = compiling.__module__  # for pickle
    compile_triton.__qualname__ = compiling.__qualname__
    tasks._worker_compile_triton = compile_triton


@hook("torch._inductor.runtime.triton_heuristics", "torch._inductor.triton_heuristics",
      release="torch", purpose=WRITES, when="values")
def watch_kernels(card, heuristics):
    """Triton kernels with a launch function of their own. The second name: up to PyTorch 2.3."""
    launch = heuristics.CachingAutotuner.run

    def run(kernel, *args, **kwargs):
        card.values.forget(WRITES, cufrag_stores.written_by_inductor, kernel, args)
        return launch(kernel, *args, **kwargs)
    heuristics.CachingAutotuner.run = run


@hook("torch._inductor.codecache", release="torch>=2.3", purpose=WRITES, when="values")
def watch_buffers(card, _):
    """Compiled code allocates without an operator (up to 2.2: by one) and writes by kernels: its
    results are unknown, not stale values."""
    guards = card.torch._C._dynamo.guards
    make = guards._empty_strided_cuda

    def empty_strided_cuda(*args):
        made = make(*args)
        card.values.unknown(made)
        return made
    guards._empty_strided_cuda = empty_strided_cuda
