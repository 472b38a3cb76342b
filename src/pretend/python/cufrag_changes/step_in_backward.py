# SPDX-License-Identifier: Apache-2.0
"""Each weight is updated in the backward pass, and its gradient released there."""
from .help import Left, adam, original, replace_step, wrap

GROUP = "optimizer"


def applies(seen):
    found = adam(seen)
    if not found:
        return None
    if len(seen.optimizers) > 1:
        raise Left("%d optimizers: the backward pass of one loss may reach weights of another" % len(seen.optimizers))
    if seen.clips:
        raise Left("%s clips the norm of all gradients, which have to be there at once" % seen.clips)
    if seen.scales:
        raise Left("a GradScaler needs all gradients at once")
    if seen.backwards != seen.steps:
        raise Left("%d backward passes for %d steps: gradients are accumulated" % (seen.backwards, seen.steps))
    return ("step in the backward pass: an optimizer for each weight, stepped by p.register_post_accumulate_grad_hook, which then sets "
            "p.grad = None", seen.backward_place)


def install(torch, seen):
    own = {name: original(torch, name) for name in ("Adam", "AdamW")}
    ready = []

    def hook(optimizer, group, p):
        seen.inner = True
        one = own[type(optimizer).__name__]([p], **{k: v for k, v in group.items() if k not in ("params", "initial_lr", "decoupled_weight_decay")})
        seen.inner = False
        one._cufrag_inner = True

        def done(p):
            one.param_groups[0]["lr"] = group["lr"]
            one.step()
            p.grad = None
        p.register_post_accumulate_grad_hook(done)

    def backward(original, *args, **kwargs):
        for ref, name, *_ in seen.optimizers if not ready else []:
            if ref() is not None and name in own:
                for group in ref().param_groups:
                    for p in group["params"]:
                        if p.requires_grad:
                            hook(ref(), group, p)
        ready.append(True)
        return original(*args, **kwargs)
    wrap(torch.Tensor, "backward", backward)
    replace_step(torch, lambda optimizer: None)
