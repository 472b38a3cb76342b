# SPDX-License-Identifier: Apache-2.0
"""Tensors that the backward pass needs wait on the host."""
from .help import each_under, save_on_host

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    return each_under(seen, "call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)")


def install(torch, seen):
    save_on_host(torch, seen, lambda size: True)
