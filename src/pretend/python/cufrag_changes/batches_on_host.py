# SPDX-License-Identifier: Apache-2.0
"""Batches wait on the host, and go to the card when they are used."""
import sys
import weakref


def applies(seen):
    waits = sorted(seen.batches.waits.items(), key=lambda x: -x[1])
    if not waits or sum(size for _, size in waits) < 1 << 20:
        return None
    return ("%.0f MiB of batches wait on the card for a later step: keep them in pinned memory of the host, and copy each when it is used" %
            (sum(size for _, size in waits) / 2**20), seen.relative(waits[0][0]))


def install(torch, seen):
    waiting = {}  # id -> (tensor on the host, its copy on the card or None)
    back = seen.batches.to

    def keep(t):
        waiting[id(t)] = [weakref.ref(t, lambda _, key=id(t): waiting.pop(key, None)), None]
        return t

    def there(t):
        if not isinstance(t, torch.Tensor) or id(t) not in waiting or t.is_cuda:
            return t
        if waiting[id(t)][1] is None:
            seen.moved += t.numel() * t.element_size()
            waiting[id(t)][1] = back(t, "cuda")
        return waiting[id(t)][1]

    class Use(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            name, kwargs = getattr(func, "__name__", ""), kwargs or {}
            if name in ("to", "cuda", "__get__", "size", "dim", "__len__", "pin_memory") or not waiting:
                return func(*args, **kwargs)
            if name == "__getitem__" and id(args[0]) in waiting:  # of all data, some
                at = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: back(t, "cpu"), args[1])
                return keep(func(args[0], at))
            return func(*torch.utils._pytree.tree_map(there, args), **torch.utils._pytree.tree_map(there, kwargs))

    def step(*_):
        for entry in waiting.values():
            entry[1] = None
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(step)
    seen.batches.keep = keep
    seen.arguments = lambda args, kwargs: (torch.utils._pytree.tree_map(there, args), torch.utils._pytree.tree_map(there, kwargs))
    Use().__enter__()
