# SPDX-License-Identifier: Apache-2.0
"""What several changes do."""
import functools
import importlib
import sys
from functools import partial  # noqa: F401

from . import Left
from .batches import is_card
from .seen import as_it_was, loss_of, repeated, with_loss, wrap  # noqa: F401

ADAM = ("Adam", "AdamW")


def wrap_forward(module, around):
    """module.forward becomes around(original, args, kwargs)."""
    inner = module.forward

    @functools.wraps(inner)
    def forward(*args, **kwargs):
        return around(inner, args, kwargs)
    module.forward = forward


def names(calls):
    """Of the models that a change applies to: all, or the largest and how many more."""
    found = [c.name for c in sorted(calls, key=lambda c: -c.size)]
    if len(found) < 3 and len(set(found)) == len(found):
        return " and ".join(found)
    return "%s and %d more model%s" % (found[0], len(found) - 1, "s" if len(found) > 2 else "")


def each_under(seen, sentence, take=lambda call: True):
    """(sentence % the models that are trained and taken, where the largest is called), or None."""
    calls = [c for c in seen.trained() if take(c)]
    return (sentence % names(calls), calls[0].place) if calls else None


def blocks_of(seen, sentence):
    """(sentence % the blocks that repeat, a place of theirs, what becomes different). May raise Left."""
    calls = seen.trained()
    if not calls:
        return None
    lists = [x for c in calls for x in c.lists]
    if not lists:
        raise Left("no modules repeat in a ModuleList or Sequential of %s" % names(calls))
    return (sentence % say_blocks(lists), lists[0][0] or next(c.place for c in calls if c.lists),
            "the running statistics of BatchNorm are updated twice" if any(c.norms for c in calls if c.lists) else "")


def say_blocks(lists):
    kinds = sorted({name for _, names in lists for name in names})
    return "%d blocks %s" % (sum(len(names) for _, names in lists), ", ".join(kinds[:3]))


def checkpoint_blocks(torch, seen, take, pays=None, calls=None, **how):
    """take(blocks): those to compute again, if they pay(block). calls(block, forward): wraps it."""
    from torch.utils.checkpoint import checkpoint

    def around(block):
        def call(inner, args, kwargs):
            if not torch.is_grad_enabled() or pays and not pays(block):
                return inner(*args, **kwargs)
            again = calls(block, inner) if calls else inner
            return checkpoint(again, *args, use_reentrant=False, **{k: f() for k, f in how.items()}, **kwargs)
        return call

    def root(module):
        for config in [m.config for m in module.modules() if getattr(getattr(m, "config", None), "use_cache", False)]:
            config.use_cache = False
        for _, blocks, _ in repeated(torch, module):
            for block in take(blocks):
                wrap_forward(block, around(block))
    seen.when_root(root)


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


def save_on_host(torch, seen, take):
    """Saved tensors of `take(bytes)` wait on the host."""
    small = 1 << 16  # bytes: values that may decide something later

    class Hooks(torch.autograd.graph.saved_tensors_hooks):
        def __init__(self):
            host = torch.autograd.graph.save_on_cpu(pin_memory=True)

            def pack(t):
                size = t.numel() * t.element_size()
                if t.is_cuda and not take(size):
                    return t
                seen.moved += 2 * size * t.is_cuda
                if not t.is_cuda or size < small:
                    return host.pack_hook(t)
                if not t.is_contiguous():
                    t.contiguous()  # as the copy does on the card
                return None, t.size(), t.dtype, t.device  # no bytes are kept

            def unpack(packed):
                if isinstance(packed, torch.Tensor):
                    return packed
                if packed[0] is not None:
                    return host.unpack_hook(packed)
                return torch.empty(packed[1], dtype=packed[2], device=packed[3])
            super().__init__(pack, unpack)

    def around(inner, args, kwargs):
        with Hooks():
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))


# ---- optimizers

def optimizers_of(seen, kinds, take=lambda groups: True):
    """(name, place, " (2 optimizers)" or "") of those of these kinds, or None."""
    found = [(name, place) for _, name, place, groups in seen.optimizers if name in kinds and take(groups)]
    return (*found[0], " (%d optimizers)" % len(found) if len(found) > 1 else "") if found else None


def adam(seen, sentence=""):
    """(sentence % their name and number, place) of Adam or AdamW. Raises Left."""
    found = optimizers_of(seen, ADAM)
    if not found and seen.optimizers:
        raise Left("the optimizer is %s, not Adam or AdamW" % seen.optimizers[0][1])
    return found and (sentence % (found[0] + found[2]) if "%" in sentence else sentence, found[1])


def original(torch, name):
    """The class with its own step."""
    cls = getattr(torch.optim, name)
    return type(name, (cls,), {"step": cls.step})


def replace_step(torch, step):
    """Adam and AdamW take step(optimizer) in place of their own; hooks and counts stay."""
    for name in ADAM:
        cls = getattr(torch.optim, name)

        def take(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            with torch.no_grad():
                step(self)
            return loss
        cls.step = torch.optim.Optimizer.profile_hook_step(take)
        cls.step.hooked = True


def inner_optimizer(seen, optimizer, make):
    """One that does the work of `optimizer`, made at its first step."""
    if not hasattr(optimizer, "_cufrag_does"):
        seen.inner = True
        optimizer._cufrag_does = make()
        seen.inner = False
        for own in (optimizer._cufrag_does, getattr(optimizer._cufrag_does, "optim", None)):
            if own is not None:
                own._cufrag_inner = True
    inner = optimizer._cufrag_does
    for mine, its in zip(optimizer.param_groups, inner.param_groups):
        its["lr"] = mine["lr"]
    return inner


def states_as(torch, seen, home, kind):
    """Adam becomes another optimizer of module `home`: kind, in which %s is Adam or AdamW."""
    home = importlib.import_module(home)

    def step(optimizer):
        def make():
            cls = getattr(home, kind.replace("%s", type(optimizer).__name__))
            return cls([{"params": g["params"], "lr": g["lr"]} for g in optimizer.param_groups])
        inner_optimizer(seen, optimizer, make).step()
    replace_step(torch, step)


def made_with(torch, seen, kinds, **options):
    """Optimizers of these kinds are made with these options."""
    def made(original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if type(optimizer).__name__ in kinds:
            if options.get("fused"):
                optimizer._step_supports_amp_scaling = True
            for group in optimizer.param_groups:
                group.update(options)
    wrap(torch.optim.Optimizer, "__init__", made)


# ---- programs that only call their model

def needs(library):
    """Raises Left where it cannot be imported."""
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        raise Left("%s is not installed" % library if error.name == library else "%s cannot be imported: %s" % (library, error)) from None
    except Exception as error:
        raise Left("%s cannot be imported: %s" % (library, error)) from None


def before_card(torch, seen, then):
    """then(model) before it goes to the card, or is called, if it was made there."""
    def first(module):
        if not module.__dict__.get("_cufrag_changed"):
            for m in module.modules():
                m.__dict__["_cufrag_changed"] = True
            then(module)

    def move(original, module, *args, **kwargs):
        if original.__name__ == "cuda" or any(is_card(torch, a) for a in (*args, *kwargs.values())):
            first(module)
        return original(module, *args, **kwargs)
    for name in ("cuda", "to"):
        wrap(torch.nn.Module, name, move)
    seen.when_root(first)


def only_called(seen):
    """First calls of models in a program that trains nothing."""
    return [] if seen.backwards or seen.optimizers else [c for c in seen.calls if c.dtype is not None]


def cache_of(seen, any_kind=False):
    """The line that generates with a cache of transformers that grows, or with any."""
    kind, place = seen.cache
    return place if kind and not seen.backwards and (any_kind or kind == "DynamicCache") else None


def on_generate(torch, seen, **options):
    """generate(…, **options), where they are not given."""
    mixin = sys.modules["transformers.generation.utils"].GenerationMixin
    wrap(mixin, "generate", lambda original, self, *args, **kwargs: original(self, *args, **{**options, **kwargs}))


# ---- ranks

def ddp(seen, sentence, parts):
    """(sentence, first call in DistributedDataParallel), or None. Raises Left with one rank."""
    call = next((c for c in seen.calls if c.name == "DistributedDataParallel"), None)
    if call and call.ranks < 2:
        raise Left("each rank would keep a part of %s: no part is smaller with one rank; give --ranks" % parts)
    return call and (sentence, call.place)


def shard_instead(torch, seen, reshard):
    """DistributedDataParallel(model) becomes one of fully_shard, called through it."""
    import contextlib
    from torch.distributed.fsdp import fully_shard
    kind = torch.nn.parallel.DistributedDataParallel

    def made(self, module, *args, **kwargs):
        torch.nn.Module.__init__(self)
        for _, blocks, _ in repeated(torch, module):
            for block in blocks:
                fully_shard(block, reshard_after_forward=reshard)
        fully_shard(module, reshard_after_forward=reshard)
        self.module = module

    @contextlib.contextmanager
    def no_sync(self):
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)
    kind.__init__, kind.no_sync = made, no_sync
    kind.forward = lambda self, *args, **kwargs: self.module(*args, **kwargs)
    kind.train = torch.nn.Module.train
