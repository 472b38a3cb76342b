# SPDX-License-Identifier: Apache-2.0
"""Changes of the batch."""
import gc
import sys
import weakref

from .help import Left, loss_of, names, with_loss, wrap_forward


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


def change_batch(torch, seen, change, all_of_them=False):
    """Rows with padding that a root is called with become change(tensor, which columns hold
    something). all_of_them: else there is nothing to do where another tensor has the batch."""
    def change_arguments(args, kwargs):
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()]
        kept, rows = seen.batches.rows(tensors)
        mine = {id(t) for t in rows}
        if not rows:
            return args, kwargs
        if all_of_them and any(id(t) not in mine for t in tensors):
            raise Left("not all that the model gets has a row for each sequence and a column for each token")

        def other(t):
            return change(t, kept) if id(t) in mine else t
        return tuple(other(a) for a in args), {k: other(v) for k, v in kwargs.items()}
    seen.arguments = change_arguments


class accumulate:
    """A part of the batch at a time, gradients accumulated over all parts."""
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


class trim_padding:
    """Batches are padded to the longest sequence in them, not further."""
    def applies(seen):
        b = seen.batches
        if not seen.calls or not b.tokens or b.trimmed < 0.01 * b.tokens:
            return None
        return ("pad each batch to the longest sequence in it: %.0f %% of the tokens that reach %s are padding in all rows of their batch" %
                (100 * b.trimmed / b.tokens, seen.calls[0].name), seen.calls[0].place)

    def install(torch, seen):
        def shorter(t, kept):
            columns = kept.any(0).nonzero()
            return t[:, int(columns[0]):int(columns[-1]) + 1].clone() if len(columns) else t
        change_batch(torch, seen, shorter)


def fit(lengths, width):
    """Number of rows, the longest sequence first into the first row with room."""
    rows = []
    for n in sorted(lengths, reverse=True):
        at = next((i for i, room in enumerate(rows) if room >= n), len(rows))
        if at == len(rows):
            rows.append(width)
        rows[at] -= n
    return len(rows)


class pack_sequences:
    """Sequences one behind the other in a row, in place of padding."""
    NUMERICS = "sequences of a row see each other, unless the model gets position ids and a mask for each (flash attention of variable length)"

    def applies(seen):
        b, call = seen.batches, seen.training()
        if not call or not b.tokens or b.padding < 0.05 * b.tokens:
            return None
        part = "%.0f %% of the tokens that reach %s are padding" % (100 * b.padding / b.tokens, call.name)
        if not call.loss:
            raise Left("%s; the loss is computed outside of the model, which would need targets packed, too" % part)
        return "put sequences one behind the other into as few rows as hold them: " + part, call.place

    def install(torch, seen):
        def packed(t, kept):
            lengths = [n for n in kept.sum(1).tolist() if n]
            width = max(lengths, default=0)
            return t[:fit(lengths, width), :width].clone() if width else t
        change_batch(torch, seen, packed, all_of_them=True)


class batches_on_host:
    """Batches wait on the host, and go to the card when they are used."""
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
