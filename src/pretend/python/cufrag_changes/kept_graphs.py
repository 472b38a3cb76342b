# SPDX-License-Identifier: Apache-2.0
"""Metrics that are kept do not keep the graph that made them."""
from .kept_tensors import line_of


def applies(seen):
    found = sorted(((size, name, path) for name, (path, size, count) in seen.graphs.items() if count > 1 and size > 1 << 20), reverse=True)
    if not found:
        return None
    size, name, path = found[0]
    return ("'%s' keeps the graph of what was computed: while it does, each call of the model leaves %.0f MiB; add .detach() (or .item()) to it" %
            (name, size / 2**20), seen.relative(line_of(name, path)))


def install(torch, seen):
    seen.drops_graphs = True
