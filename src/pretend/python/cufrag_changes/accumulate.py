# SPDX-License-Identifier: Apache-2.0
"""A part of the batch at a time, gradients accumulated over all parts."""
import gc
import weakref

from .help import Left, loss_of, names, with_loss, wrap_forward


def applies(seen):
    call, calls = seen.training(), seen.trained()
    if not call:
        return None
    if call.batch < 2:
        raise Left("the batch is %d" % call.batch)
    if any(c.norms for c in calls):
        raise Left("BatchNorm has statistics of a batch: with half of it the training is another one")
    outside = [c for c in calls if not c.loss]
    if outside:
        raise Left("the loss is computed outside of %s: halve the batch and call backward() twice for each step" % names(outside))
    return "cut the batch of %d into {n} parts, and call backward() for each before the step" % call.batch, call.place


def most(seen):
    return seen.training().batch


def cut(torch, args, kwargs, n):
    """(batch, [(size, args, kwargs)]) of n parts of all tensors of the batch, as Tensor.chunk does."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()]
    batch = tensors[0].shape[0] if tensors else 0
    size = max(1, -(-batch // n))
    out = []
    for begin in range(0, batch, size):
        def part(t):
            return t[begin:begin + size] if isinstance(t, torch.Tensor) and t.dim() and t.shape[0] == batch else t
        out.append((min(size, batch - begin), [part(a) for a in args], {k: part(v) for k, v in kwargs.items()}))
    return batch, out


def large(torch, out):
    """What a model gave beside its loss."""
    return [t for t in torch.utils._pytree.tree_flatten(out if isinstance(out, (tuple, list, dict)) else vars(out) if hasattr(out, "__dict__") else [])[0]
            if isinstance(t, torch.Tensor) and t.is_cuda and t.numel() > 1]


def only_variables(tensors):
    """Only variables of the program hold them."""
    return all(r is tensors or isinstance(r, dict) and "__builtins__" in r for t in tensors for r in gc.get_referrers(t))


def install(torch, seen):
    import torch.utils._pytree  # noqa: F401
    n = seen.number or 2
    given = []  # weak references to what the program got from the last call

    def around(inner, args, kwargs):
        batch, parts = cut(torch, args, kwargs, n)
        if len(parts) < 2 or not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        before, held = 0, [t for t in (r() for r in given) if t is not None]
        keeps = bool(held)
        for size, a, k in parts:
            out = inner(*a, **k)
            keeps = keeps or not given and isinstance(out, tuple)  # unpacked means kept
            if loss_of(torch, out) is None:
                return inner(*args, **kwargs)
            loss = loss_of(torch, out) * (size / batch)
            if a is parts[-1][1]:
                given[:] = map(weakref.ref, large(torch, out))
                return with_loss(torch, out, loss + before)
            if not keeps:
                del out
            if only_variables(held):  # they would have what this part gave instead
                for t in held:
                    t.untyped_storage().resize_(0)
            held = []
            if torch.is_autocast_enabled():  # its copies of weights are those of one pass
                torch.clear_autocast_cache()
            loss.backward()
            before = before + loss.detach()
            out = loss = None
    seen.when_root(lambda root: wrap_forward(root, around))
