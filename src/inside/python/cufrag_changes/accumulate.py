# SPDX-License-Identifier: Apache-2.0
"""A part of the batch at a time, gradients accumulated over all parts."""
from .help import Left, loss_of, with_loss, wrap_forward

NUMERICS = ""


def applies(seen):
    call = seen.training()
    if not call:
        return None
    if call.batch < 2:
        raise Left("the batch is %d" % call.batch)
    if call.norms:
        raise Left("BatchNorm has statistics of a batch: with half of it the training is another one")
    if not call.loss:
        raise Left("the loss is computed outside of %s: halve the batch and call backward() twice for each step" % call.name)
    return "cut the batch of %d into {n} parts, and call backward() for each before the step" % call.batch, call.place


def most(seen):
    return seen.training().batch


def cut(torch, args, kwargs, n):
    """(batch, [(size, args, kwargs)]) of n parts of all that has the batch as its first dimension, as Tensor.chunk cuts it."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()]
    batch = tensors[0].shape[0] if tensors else 0
    size = max(1, -(-batch // n))
    out = []
    for begin in range(0, batch, size):
        def part(t):
            return t[begin:begin + size] if isinstance(t, torch.Tensor) and t.dim() and t.shape[0] == batch else t
        out.append((min(size, batch - begin), [part(a) for a in args], {k: part(v) for k, v in kwargs.items()}))
    return batch, out


def install(torch, seen):
    n = seen.number or 2

    def around(inner, args, kwargs):
        batch, parts = cut(torch, args, kwargs, n)
        if len(parts) < 2 or not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        before = 0
        for size, a, k in parts:
            out = inner(*a, **k)
            if loss_of(torch, out) is None:
                return inner(*args, **kwargs)
            loss = loss_of(torch, out) * (size / batch)
            if a is parts[-1][1]:
                return with_loss(torch, out, loss + before)
            if torch.is_autocast_enabled():  # its copies of weights are those of one pass
                torch.clear_autocast_cache()
            loss.backward()
            before = before + loss.detach()
            del out, loss
    seen.when_root(lambda root: wrap_forward(root, around))
