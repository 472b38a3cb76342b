# SPDX-License-Identifier: Apache-2.0
"""Tensors that the backward pass needs wait on the host."""
from .help import wrap_forward

NUMERICS = ""


def applies(seen):
    call = seen.training()
    return call and ("call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)" % call.name, call.place)


def install(torch, seen):
    class Hooks(torch.autograd.graph.saved_tensors_hooks):
        def __init__(self):
            host = torch.autograd.graph.save_on_cpu(pin_memory=True)

            def pack(t):
                seen.moved += 2 * t.numel() * t.element_size() * t.is_cuda
                return host.pack_hook(t)
            super().__init__(pack, host.unpack_hook)

    def around(inner, args, kwargs):
        with Hooks():
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))
