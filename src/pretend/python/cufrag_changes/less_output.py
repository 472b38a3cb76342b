# SPDX-License-Identifier: Apache-2.0
"""Changes of logits, and of other outputs."""
from .help import Left, names, wrap

CHUNKS = 8
NAMES = ("output_hidden_states", "output_attentions")


class Product:
    """What F.linear would give, not computed yet, and gone after the loss."""

    def __init__(self, torch, linear, h, w, b):
        self.torch, self.linear, self.h, self.w, self.b = torch, linear, h, w, b
        self.autocast = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
        self.dtype = self.autocast[1] if self.autocast[0] else h.dtype
        self.all = None

    def of(self, h):
        with self.torch.autocast("cuda", enabled=self.autocast[0], dtype=self.autocast[1]):
            return self.linear(h, self.w, self.b)

    def whole(self):
        if self.all is None:
            if self.h is None:
                raise RuntimeError("the program uses logits after their loss")
            self.all, self.h = self.of(self.h), None
        return self.all


def lazy_tensor(torch):
    """Tensors for rows of a product: they may be sliced; all else computes them."""
    plain = {getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype", "device", "is_cuda", "requires_grad", "ndim", "layout")}
    plain |= {getattr(torch.Tensor, name) for name in ("size", "dim", "numel", "nelement", "is_floating_point", "__len__")}

    class Lazy(torch.Tensor):
        @staticmethod
        def __new__(cls, product, shape, dtype, steps):
            self = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=product.w.device, requires_grad=True)
            self.product, self.steps, self.value = product, steps, None  # on h, on logits
            return self

        def whole(self):
            if self.value is None:
                self.value = self.product.whole()
                for _, then in self.steps:
                    self.value = then(self.value)
            return self.value

        def followed(self, name, func, args, kwargs):
            """The same of its rows, or None."""
            width, shape = self.size(-1), tuple(self.shape)
            if name in ("float", "contiguous") and not args:
                return shape, torch.float32 if name == "float" else self.dtype, lambda h: h
            if name == "to" and len(args) == 1 and args[0] in (torch.float32, self.dtype, self.device):
                return shape, torch.float32 if args[0] == torch.float32 else self.dtype, lambda h: h
            if name in ("view", "reshape", "flatten", "squeeze", "unsqueeze") and not any(isinstance(a, torch.dtype) for a in args):
                out = tuple(func(torch.empty(shape, device="meta"), *args, **kwargs).shape)
                return (out, self.dtype, lambda h: h.reshape(*out[:-1], h.size(-1))) if out and out[-1] == width else None
            if name == "__getitem__":
                at = args[0] if isinstance(args[0], tuple) else (args[0],)
                whole_rows = at[-1] == slice(None) if Ellipsis in at or len(at) == len(shape) else True
                if whole_rows and all(isinstance(i, slice) or i is Ellipsis for i in at):
                    return tuple(torch.empty(shape, device="meta")[at].shape), self.dtype, lambda h: h[at]
            return None

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            kwargs, self = kwargs or {}, args[0] if args else None
            if func in plain:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            if isinstance(self, cls) and self.value is None:
                found = self.followed(getattr(func, "__name__", ""), func, args[1:], kwargs)
                if found:
                    shape, dtype, on_h = found
                    return cls(self.product, shape, dtype, self.steps + [(on_h, lambda t: func(t, *args[1:], **kwargs))])
            args, kwargs = torch.utils._pytree.tree_map_only(cls, cls.whole, (args, kwargs))
            return func(*args, **kwargs)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("%s gets logits past PyTorch's functions" % func)
    return Lazy


class chunked_loss:
    """Cross-entropy of a few rows of logits at a time, computed again in the backward pass."""
    def applies(seen):
        graphs = [c for c in seen.trained() if c.whole and c.logits]
        if graphs:
            raise Left("has no effect within torch.compile's graph, in which %s makes its logits: leave its last Linear and the loss out of what "
                       "is compiled" % names(graphs))
        if not seen.losses or not seen.backwards:
            return None
        size, place, made, rows = max(seen.losses, key=lambda x: x[0])
        if size < 0.02 * seen.torch.cuda.max_memory_allocated():
            return None
        if not made and not rows:
            raise Left("the %.0f MiB of logits at %s have their classes in dimension 1: make them (rows, classes) for a loss in chunks" %
                       (size / 2**20, seen.relative(place)))
        if not made:
            raise Left("the %.0f MiB of logits at %s are not what a Linear gave" % (size / 2**20, seen.relative(place)))
        return ("compute logits and cross-entropy (%d rows, %.0f MiB as float32) in %d chunks, each under torch.utils.checkpoint; "
                "return no logits" % (rows, size / 2**20, CHUNKS), seen.relative(place))

    def install(torch, seen):
        import torch.utils._pytree  # noqa: F401
        from torch.utils.checkpoint import checkpoint
        Lazy = lazy_tensor(torch)

        def linear(original, h, w, b=None):
            if torch.is_grad_enabled() and h.is_cuda and w.requires_grad and seen.wide(h, w):
                product = Product(torch, original, h, w, b)
                return Lazy(product, (*h.shape[:-1], w.shape[0]), product.dtype, [])
            return original(h, w, b)
        wrap(torch.nn.functional, "linear", linear)

        def loss(original, logits, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0):
            rest = weight, size_average, ignore_index, reduce, reduction, label_smoothing
            if not isinstance(logits, Lazy):
                return original(logits, target, *rest)
            product = logits.product
            if (logits.dim() != 2 or target.is_floating_point() or weight is not None or size_average is not None or reduce is not None or
                    reduction not in ("mean", "sum") or product.h is None):
                return original(logits.whole(), target, *rest)
            h, dtype, total = product.h, logits.dtype, 0
            for on_h, _ in logits.steps:
                h = on_h(h)

            def part(h, y):
                return original(product.of(h).to(dtype), y, ignore_index=ignore_index, reduction="sum", label_smoothing=label_smoothing)
            for rows, y in zip(h.chunk(CHUNKS), target.chunk(CHUNKS)):
                total = total + checkpoint(part, rows, y, use_reentrant=False)
            product.h = None
            return total / (target != ignore_index).sum() if reduction == "mean" else total
        wrap(torch.nn.functional, "cross_entropy", loss)


class logits_not_float:
    """Logits go into the loss as they are, without a copy in float32."""
    INSIDE = True
    NUMERICS = "the loss is computed of logits in 16 bits"

    def applies(seen):
        found = [x for x in seen.floated if x[2] in seen.scored - seen.taken]
        if not found or not seen.backwards:
            return None
        size, place, _ = max(found)
        return "no .float() of %.0f MiB of logits" % (size / 2**20), seen.relative(place)

    def install(torch, seen):
        def as_it_is(original, t, *args, **kwargs):
            return t if seen.is_logits(t, original, args, kwargs) else original(t, *args, **kwargs)
        for name in ("float", "to"):
            wrap(torch.Tensor, name, as_it_is)


class outputs_off:
    """A model of transformers does not give hidden states and attentions of all its layers."""
    def applies(seen):
        calls = [c for c in seen.calls if c.outputs]
        return calls and ("%s in the call of %s" % (", ".join("%s=False" % name for name in calls[0].outputs), names(calls)), calls[0].place)

    def install(torch, seen):
        def root(module):
            for m in module.modules():
                for name in NAMES:
                    if getattr(getattr(m, "config", None), name, False):
                        try:
                            setattr(m.config, name, False)
                        except ValueError:  # of a release that does not like to be told
                            pass
        seen.when_root(root)
        seen.arguments = lambda args, kwargs: (args, {**kwargs, **{name: False for name in NAMES if kwargs.get(name)}})
