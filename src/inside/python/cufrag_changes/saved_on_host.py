# SPDX-License-Identifier: Apache-2.0
"""Tensors that the backward pass needs wait on the host."""
from .help import save_on_host

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    call = seen.training()
    return call and ("call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)" % call.name, call.place)


def install(torch, seen):
    save_on_host(torch, seen, lambda size: True)
