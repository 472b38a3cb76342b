# SPDX-License-Identifier: Apache-2.0
"""The largest tensors that the backward pass needs wait on the host: those that have half of the bytes."""
from .help import Left, each_under, save_on_host

GROUP = "blocks"


def applies(seen):
    found = each_under(seen, "call %s under torch.autograd.graph.saved_tensors_hooks that move the largest of what is saved, "
                       "half of the bytes, to the host")
    if found and seen.steps < 2:
        raise Left("which are largest is known after a first step, and there is one step only")
    return found


def install(torch, seen):
    sizes, least = [], []

    def take(size):
        if not seen.steps:  # the first step has no states yet: all is moved
            sizes.append(size)
            return True
        if not least:
            sizes.sort(reverse=True)
            left = sum(sizes) / 2
            while left > 0:
                left -= sizes[0]
                least[:] = [sizes.pop(0)]
        return size >= least[0]
    save_on_host(torch, seen, take)
