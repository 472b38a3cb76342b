# SPDX-License-Identifier: Apache-2.0
"""Tensors that the backward pass needs wait on the host."""
from .help import wrap_forward

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    call = seen.training()
    return call and ("call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)" % call.name, call.place)


def install(torch, seen):
    small = 1 << 16  # bytes: values that may decide something later

    class Hooks(torch.autograd.graph.saved_tensors_hooks):
        def __init__(self):
            host = torch.autograd.graph.save_on_cpu(pin_memory=True)

            def pack(t):
                size = t.numel() * t.element_size()
                seen.moved += 2 * size * t.is_cuda
                if not t.is_cuda or size < small:
                    return host.pack_hook(t)
                if not t.is_contiguous():
                    t.contiguous()  # as the copy does on the card
                return None, t.size(), t.dtype, t.device  # what is on the host has no bytes here: nobody reads them

            def unpack(packed):
                if packed[0] is not None:
                    return host.unpack_hook(packed)
                return torch.empty(packed[1], dtype=packed[2], device=packed[3])
            super().__init__(pack, unpack)

    def around(inner, args, kwargs):
        with Hooks():
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))
