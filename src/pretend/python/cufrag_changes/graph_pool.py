# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs share one private pool."""
from .seen import wrap


def applies(seen):
    if len(seen.captures) < 2:
        return None
    return ("give all %d graphs one pool: torch.cuda.graph(g, pool=first.pool()); replay them in the order of their capture, and read what "
            "one gives before the next is replayed" % len(seen.captures), seen.relative(seen.captures[0]))


def install(torch, seen):
    pool = []

    def capture(original, graph, *args, **kwargs):
        if not (args and args[0] is not None or kwargs.get("pool") is not None):
            pool[:] = pool or [torch.cuda.graph_pool_handle()]
            args, kwargs["pool"] = (), pool[0]
        return original(graph, *args, **kwargs)
    wrap(torch.cuda.CUDAGraph, "capture_begin", capture)
