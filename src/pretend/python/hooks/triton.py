# SPDX-License-Identifier: Apache-2.0
"""Kernels of Triton bypass the dispatcher, so what they write is marked as unknown."""
import cufrag_stores
from cufrag_hooks import hook

WRITES = "what tells that what a kernel of Triton writes is not computed, so decisions that depend on it may be wrong"


@hook("triton.common.build", release="triton<3", purpose="the place of Triton's driver")
def find_driver(card, build):
    """Triton 2.1 only asks ldconfig."""
    build.libcuda_dirs = lambda: [card.folder]


@hook("triton.runtime.jit", release="triton>=2.1", purpose=WRITES, when="values")
def watch_launches(card, jit):
    def watched(launch, *of):  # of: the kernel, if it is not the first argument
        def run(*args, **kwargs):
            kernel, *given = *of, *args
            if not kwargs.get("warmup"):
                card.values.forget(WRITES, cufrag_stores.written, kernel, given, kwargs)
            return launch(*args, **kwargs)
        return run
    if hasattr(jit.JITFunction, "run"):
        jit.JITFunction.run = watched(jit.JITFunction.run)
        return
    make = jit.JITFunction._make_launcher  # Triton 2.1: one per kernel
    jit.JITFunction._make_launcher = lambda kernel: watched(make(kernel), kernel)


@hook("triton.compiler.compiler", release="triton>=2.1", purpose=WRITES, when="values")
def watch_compiled(card, compiler):
    """Kernels that the program compiled ahead of the launch."""
    launcher = compiler.CompiledKernel.__getitem__

    def launcher_of(kernel, grid):
        launch = launcher(kernel, grid)

        def run(*args, **kwargs):
            card.values.forget(WRITES, cufrag_stores.written_compiled, kernel, args)
            return launch(*args, **kwargs)
        return run
    compiler.CompiledKernel.__getitem__ = launcher_of
