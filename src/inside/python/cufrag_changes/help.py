# SPDX-License-Identifier: Apache-2.0
"""What several changes do."""
import functools

from . import Left
from .seen import loss_of, repeated, with_loss, wrap  # noqa: F401

ADAM = ("Adam", "AdamW")


def wrap_forward(module, around):
    """module.forward becomes around(original, args, kwargs)."""
    inner = module.forward

    @functools.wraps(inner)
    def forward(*args, **kwargs):
        return around(inner, args, kwargs)
    module.forward = forward


def blocks_of(seen):
    """(call, its lists of blocks: place, names of their classes) of the model that is trained. Raises Left."""
    call = seen.training()
    if not call:
        return None
    if not call.lists:
        raise Left("no modules repeat in a ModuleList or Sequential of %s" % call.name)
    return call, call.lists


def say_blocks(lists):
    kinds = sorted({name for _, names in lists for name in names})
    return "%d blocks %s" % (sum(len(names) for _, names in lists), ", ".join(kinds[:3]))


def place_of(call, lists):
    return lists[0][0] or call.place


def checkpoint_blocks(torch, seen, take, **how):
    """take(list of blocks): those that are computed again."""
    from torch.utils.checkpoint import checkpoint

    def around(inner, args, kwargs):
        if not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        return checkpoint(inner, *args, use_reentrant=False, **{k: f() for k, f in how.items()}, **kwargs)

    def root(module):
        for config in [m.config for m in module.modules() if getattr(getattr(m, "config", None), "use_cache", False)]:
            config.use_cache = False
        for _, blocks, _ in repeated(torch, module):
            for block in take(blocks):
                wrap_forward(block, around)
    seen.when_root(root)


def norms(call):
    return "the running statistics of BatchNorm are updated twice" if call.norms else ""


# ---- optimizers

def adam(seen):
    """(name, place) of the Adam or AdamW. Raises Left."""
    found = seen.optimizer(*ADAM)
    if not found and seen.optimizers:
        raise Left("the optimizer is %s, not Adam or AdamW" % seen.optimizers[0][1])
    return found


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
        optimizer._cufrag_does._cufrag_inner = True
    inner = optimizer._cufrag_does
    for mine, its in zip(optimizer.param_groups, inner.param_groups):
        its["lr"] = mine["lr"]
    return inner


def states_as(torch, seen, cls, **options):
    """Steps of Adam become those of another optimizer of torch.optim."""
    def step(optimizer):
        def make():
            return getattr(torch.optim, cls)(
                [{"params": g["params"], "lr": g["lr"], "weight_decay": g["weight_decay"]} for g in optimizer.param_groups], **options)
        inner_optimizer(seen, optimizer, make).step()
    replace_step(torch, step)
