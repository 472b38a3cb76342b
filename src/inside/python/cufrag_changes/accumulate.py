# SPDX-License-Identifier: Apache-2.0
"""Half of the batch at a time, gradients accumulated over both halves."""
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
    return "halve the batch of %d, and call backward() for both halves before each step" % call.batch, call.place


def halves(torch, args, kwargs):
    """Both halves of all that has the batch as its first dimension."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()]
    batch = tensors[0].shape[0] if tensors else 0
    out = []
    for begin, end in ((0, batch // 2), (batch // 2, batch)):
        def part(t):
            return t[begin:end] if isinstance(t, torch.Tensor) and t.dim() and t.shape[0] == batch else t
        out.append(([part(a) for a in args], {k: part(v) for k, v in kwargs.items()}))
    return batch, out


def install(torch, seen):
    def around(inner, args, kwargs):
        batch, parts = halves(torch, args, kwargs)
        if batch < 2 or not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        first = inner(*parts[0][0], **parts[0][1])
        loss = loss_of(torch, first)
        if loss is None:
            return inner(*args, **kwargs)
        if torch.is_autocast_enabled():  # its copies of weights are those of one pass
            torch.clear_autocast_cache()
        (loss / 2).backward()
        before = loss.detach() / 2
        del first, loss
        second = inner(*parts[1][0], **parts[1][1])
        whole = loss_of(torch, second) / 2 + before
        return with_loss(torch, second, whole)
    seen.when_root(lambda root: wrap_forward(root, around))
