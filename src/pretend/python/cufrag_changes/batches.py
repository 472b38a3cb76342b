# SPDX-License-Identifier: Apache-2.0
"""Batches on their way to the card: what was copied there, how much of it is padding, and what waits there before it is used."""
import weakref

from .seen import wrap


class Copy:
    """A tensor that the program copied to the card."""

    def __init__(self, torch, there, here, place, step):
        self.there, self.place, self.step = weakref.ref(there), place, step
        self.size, self.shape = there.numel() * there.element_size(), tuple(there.shape)
        self.used = False
        self.filled = filled(torch, here)


def filled(torch, t):
    """Of rows with padding: which columns hold something (rows x columns, of bool), else None. A
    mask says so; ids end, or begin, with a value that is repeated."""
    if t.dim() != 2 or t.is_floating_point() or t.is_complex() or not 1 < t.shape[1] or not 0 < t.numel() <= 1 << 22:
        return None
    if t.dtype == torch.bool or (int(t.max()) <= 1 and int(t.min()) >= 0):
        kept = t != 0
        return kept if bool(kept.any()) and not bool(kept.all()) else None
    for at in (-1, 0):  # where padding lies
        value = int(t[:, at].mode().values)
        same = t == value
        run = (same.flip(1) if at else same).long().cumprod(1).sum(1)
        if int((run > 1).sum()):
            columns = torch.arange(t.shape[1])[None]
            return columns < t.shape[1] - run[:, None] if at else columns >= run[:, None]
    return None


def is_card(torch, where):
    return (where.startswith("cuda") if isinstance(where, str) else where.type == "cuda" if isinstance(where, torch.device) else
            isinstance(where, torch.Tensor) and where.is_cuda)


class Batches:
    """`keep`: None, or what is given in place of a copy (keep(host tensor))."""

    def __init__(self, torch, seen):
        self.torch, self.seen, self.keep = torch, seen, None
        self.copies = {}  # id -> Copy
        self.moving = 0  # inside of Module.to
        self.tokens = self.padding = self.trimmed = 0  # trimmed: in all rows
        self.waits = {}  # place -> most bytes there that no model was called with in a step
        self.plain = torch.Tensor.to
        wrap(torch.nn.Module, "_apply", self.on_move)
        wrap(torch.Tensor, "to", self.on_copy)
        wrap(torch.Tensor, "cuda", self.on_copy)

    def on_move(self, original, module, *args, **kwargs):
        self.moving += 1
        try:
            return original(module, *args, **kwargs)
        finally:
            self.moving -= 1

    def to(self, t, where):
        with self.torch._C.DisableTorchFunction():  # else a mode would get the wrapped one
            return self.plain(t, where)

    def on_copy(self, original, t, *args, **kwargs):
        if t.is_cuda or self.moving or self.seen.depth or t.requires_grad or type(t) is not self.torch.Tensor:
            return original(t, *args, **kwargs)
        words = (*args, *kwargs.values())
        if self.keep and (original.__name__ == "cuda" or any(is_card(self.torch, w) for w in words)):
            return self.keep(self.to(t, next((w for w in words if isinstance(w, self.torch.dtype)), t.dtype)))
        there = original(t, *args, **kwargs)
        if isinstance(there, self.torch.Tensor) and there.is_cuda and len(self.copies) < 10000:
            self.copies[id(there)] = Copy(self.torch, there, t, self.seen.place(), self.seen.steps)
        return there

    def rows(self, tensors):
        """(which columns hold something, tensors that have these rows and columns)"""
        masks = [c.filled for t in tensors for c in [self.copies.get(id(t))] if c and c.filled is not None and c.there() is t]
        if not masks or any(m.shape != masks[0].shape for m in masks):
            return None, []
        kept = masks[0]
        for m in masks[1:]:
            kept = kept | m
        return kept, [t for t in tensors if tuple(t.shape[:2]) == tuple(kept.shape)]

    def called(self, args, kwargs):
        """A model is called."""
        tensors = [t for t in self.torch.utils._pytree.tree_flatten((args, kwargs))[0] if isinstance(t, self.torch.Tensor)]
        for t in tensors:
            if id(t) in self.copies:
                self.copies[id(t)].used = True
        kept, _ = self.rows(tensors)
        if kept is not None:
            self.padding += int((~kept).sum())
            self.trimmed += int((~kept.any(0)).sum()) * kept.shape[0]
        self.tokens += max((t.numel() for t in tensors if t.dim() == 2 and not t.is_floating_point()), default=0)

    def stepped(self):
        """A step ended: what was copied and is there without having been used?"""
        waits = {}
        for key, c in list(self.copies.items()):
            if c.there() is None:
                del self.copies[key]
            elif not c.used:
                waits[c.place] = waits.get(c.place, 0) + c.size
            c.used = False
        for place, size in waits.items():
            self.waits[place] = max(self.waits.get(place, 0), size)
