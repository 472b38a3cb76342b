# SPDX-License-Identifier: Apache-2.0
"""Tensors that a variable keeps over steps go to the host, without their graphs."""
import re
import sys

from .seen import tensors_in, wrap


def line_of(name, path):
    """Where the file adds to the variable."""
    adds = re.compile(r".*(?<![.\w]){0}(\s*([-+*/|&]=|=[^=].*\b{0}\b)|\.(append|extend|insert)\()".format(re.escape(name)))
    try:
        with open(path) as f:
            return next(("%s:%d" % (path, n) for n, line in enumerate(f, 1) if adds.match(line)), path)
    except (OSError, TypeError, ValueError):
        return ""


def applies(seen):
    grows = seen.growing()
    if not grows or grows[0][1] < 1 << 20:
        return None
    name, size = grows[0]
    return ("'%s' keeps %.0f MiB more after each step: keep .detach().cpu() (or .item()) in it" % (name, size / 2**20),
            seen.relative(line_of(name, seen.files[name])))


def install(torch, seen):
    done = set()

    def step(*_):
        for _, holder, _ in seen.variables():
            for t in tensors_in(torch, holder):
                if id(t) not in done:
                    done.add(id(t))
                    if t.grad_fn is not None:
                        t.detach_()
                    seen.moved += t.numel() * t.element_size()
                    t.untyped_storage().resize_(0)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(step)

    def backward(original, *args, **kwargs):  # by hand they would be gone by now
        step()
        return original(*args, **kwargs)
    wrap(torch.Tensor, "backward", backward)
