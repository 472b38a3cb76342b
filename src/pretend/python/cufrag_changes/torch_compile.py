# SPDX-License-Identifier: Apache-2.0
"""The model through torch.compile, which joins operations and saves fewer tensors for the backward pass."""
import sys

from .help import Left, as_it_was, each_under

GROUP = "blocks"
UNTIMED = True  # it compiles on the host in the first step


def applies(seen):
    if "torch._inductor.compile_fx" in sys.modules:
        return None
    if any(c.name == "DistributedDataParallel" for c in seen.trained()):
        raise Left("DDP splits what is compiled: compare with a copy of the program that compiles (cufrag compare)")
    return each_under(seen, "compile %s before the first step: model.compile()")


def install(torch, seen):
    as_it_was(torch.nn.functional, "cross_entropy", "linear")
    as_it_was(torch.Tensor, "to", "cuda", "float")
    import torch._inductor.config
    torch._inductor.config.compile_threads = 1

    def root(module):
        module.forward = torch.compile(module.forward)
    seen.when_root(root)
