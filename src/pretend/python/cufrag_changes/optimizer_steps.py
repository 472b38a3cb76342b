# SPDX-License-Identifier: Apache-2.0
"""Changes of the optimizer: its states, its step, its gradients."""
import importlib

from .help import ADAM, Left, adam, ddp, needs, optimizers_of, partial, wrap

ANOTHER = "another optimizer needs another learning rate and schedule"


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


def step_of_another(torch, seen, make):
    """make(optimizer), at its first step, does the work of Adam or AdamW."""
    def step(optimizer):
        if not hasattr(optimizer, "_cufrag_does"):
            seen.inner = True
            optimizer._cufrag_does = make(optimizer)
            seen.inner = False
            for own in (optimizer._cufrag_does, getattr(optimizer._cufrag_does, "optim", None)):
                if own is not None:
                    own._cufrag_inner = True
        inner = optimizer._cufrag_does
        for mine, its in zip(optimizer.param_groups, inner.param_groups):
            its["lr"] = mine["lr"]
        inner.step()
    replace_step(torch, step)


def states_as(torch, seen, home, kind):
    """Adam becomes another optimizer of module `home`: kind, in which %s is Adam or AdamW."""
    home = importlib.import_module(home)

    def make(optimizer):
        cls = getattr(home, kind.replace("%s", type(optimizer).__name__))
        return cls([{"params": g["params"], "lr": g["lr"]} for g in optimizer.param_groups])
    step_of_another(torch, seen, make)


def without(seen, kinds, option, busy):
    """Optimizers of these kinds with the option, but for those that have it already (busy)."""
    found = optimizers_of(seen, kinds, lambda groups: not any(map(busy, groups)))
    return found and ("%s(…, %s)%s" % (found[0], option, found[2]), found[1])


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


def of_bitsandbytes(seen, sentence):
    found = adam(seen, sentence.replace("*", (optimizers_of(seen, ADAM) or ("",))[0]))
    if found:
        needs("bitsandbytes")
    return found


class adafactor:
    """Adafactor: one number for each row and column in place of two for each weight."""
    NUMERICS, GROUP = ANOTHER, "optimizer"
    install = partial(states_as, home="torch.optim", kind="Adafactor")

    def applies(seen):
        found = adam(seen, "torch.optim.Adafactor in place of %s")
        if found and not hasattr(seen.torch.optim, "Adafactor"):
            raise Left("this release of PyTorch has no torch.optim.Adafactor (2.5)")
        return found


class adam_8bit:
    """States of Adam in 8 bits."""
    NUMERICS, GROUP = "states of the optimizer are rounded to 8 bits", "optimizer"
    applies = partial(of_bitsandbytes, sentence="bitsandbytes.optim.*8bit in place of %s")
    install = partial(states_as, home="bitsandbytes.optim", kind="%s8bit")


class adam_paged:
    """States of Adam in memory that the driver moves between host and card."""
    GROUP = "optimizer"
    applies = partial(of_bitsandbytes, sentence="bitsandbytes.optim.Paged* in place of %s: states leave the card, "
                      "outside of PyTorch's memory, where that is full")
    install = partial(states_as, home="bitsandbytes.optim", kind="Paged%s")


class foreach_off:
    """The optimizer takes one weight after the other, without lists of temporary tensors."""
    GROUP = "optimizer"
    KINDS = "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "SGD"
    applies = partial(without, kinds=KINDS, option="foreach=False", busy=lambda g: g["fused"] or g["foreach"] is False)
    install = partial(made_with, kinds=KINDS, foreach=False)


class fused:
    """The optimizer's step in one kernel, without temporary tensors."""
    GROUP = "optimizer"
    KINDS = "Adam", "AdamW", "SGD", "Adagrad"
    applies = partial(without, kinds=KINDS, option="fused=True", busy=lambda g: g["fused"] or g["differentiable"])
    install = partial(made_with, kinds=KINDS, fused=True, foreach=False)


class sgd:
    """SGD, which keeps no states."""
    NUMERICS, GROUP = ANOTHER, "optimizer"
    applies = partial(adam, sentence="torch.optim.SGD without momentum in place of %s")
    install = partial(states_as, home="torch.optim", kind="SGD")


class states_on_host:
    """States of the optimizer in memory of the host, where its step is computed, too."""
    GROUP = "optimizer"
    applies = partial(adam, sentence="keep %s on the host: gradients go there, its step runs there, weights come back "
                      "(torchao's CPUOffloadOptimizer)")

    def install(torch, seen):
        def step(optimizer):
            """Gradients leave, weights come. The host's part is not computed."""
            for p in (p for g in optimizer.param_groups for p in g["params"] if p.grad is not None):
                p.grad.contiguous()
                seen.moved += 2 * p.numel() * p.element_size()
        replace_step(torch, step)


class step_in_backward:
    """Each weight is updated in the backward pass, and its gradient released there."""
    GROUP = "optimizer"

    def applies(seen):
        if not adam(seen):
            return None
        if len(seen.optimizers) > 1:
            raise Left("%d optimizers: the backward pass of one loss may reach weights of another" % len(seen.optimizers))
        if seen.clips:
            raise Left("%s clips the norm of all gradients, which have to be there at once" % seen.clips)
        if seen.scales:
            raise Left("a GradScaler needs all gradients at once")
        if seen.backwards != seen.steps:
            raise Left("%d backward passes for %d steps: gradients are accumulated" % (seen.backwards, seen.steps))
        return ("step in the backward pass: an optimizer for each weight, stepped by p.register_post_accumulate_grad_hook, "
                "which then sets p.grad = None", seen.backward_place)

    def install(torch, seen):
        own = {name: original(torch, name) for name in ADAM}
        ready = []

        def hook(optimizer, group, p):
            seen.inner = True
            one = own[type(optimizer).__name__]([p], **{k: v for k, v in group.items() if k not in (
                "params", "initial_lr", "decoupled_weight_decay")})
            seen.inner = False
            one._cufrag_inner = True

            def done(p):
                one.param_groups[0]["lr"] = group["lr"]
                one.step()
                p.grad = None
            p.register_post_accumulate_grad_hook(done)

        def backward(original, *args, **kwargs):
            found = [ref() for ref, name, *_ in seen.optimizers if not ready and ref() is not None and name in own]
            for optimizer, group, p in [(o, g, p) for o in found for g in o.param_groups for p in g["params"]]:
                if p.requires_grad:
                    hook(optimizer, group, p)
            ready.append(True)
            return original(*args, **kwargs)
        wrap(torch.Tensor, "backward", backward)
        replace_step(torch, lambda optimizer: None)


class zero_states:
    """ZeRO stage 1: each rank keeps a part of the optimizer's states, and updates a part of the weights."""
    GROUP = "optimizer"

    def applies(seen):
        return ddp(seen, "", "the states") and adam(seen, "torch.distributed.optim.ZeroRedundancyOptimizer(…, optimizer_class=%s)")

    def install(torch, seen):
        own = {name: original(torch, name) for name in ADAM}

        def make(optimizer):
            from torch.distributed.optim import ZeroRedundancyOptimizer
            plain = {k: v for k, v in optimizer.defaults.items() if k != "decoupled_weight_decay"}
            return ZeroRedundancyOptimizer([p for g in optimizer.param_groups for p in g["params"]],
                                           optimizer_class=own[type(optimizer).__name__], **plain)
        step_of_another(torch, seen, make)


class zero_to_none:
    """Gradients are released, not set to zero."""
    def applies(seen):
        return seen.zeroed and ("zero_grad(set_to_none=True)", seen.zeroed)

    def install(torch, seen):
        wrap(torch.optim.Optimizer, "zero_grad", lambda original, optimizer, set_to_none=True: original(optimizer, set_to_none=True))
