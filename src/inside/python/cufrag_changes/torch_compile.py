# SPDX-License-Identifier: Apache-2.0
"""The model through torch.compile, which joins operations and saves fewer tensors for the backward pass."""
import sys

from .help import Left, as_it_was

NUMERICS = ""
GROUP = "blocks"
UNTIMED = True  # it compiles on the host in the first step


def applies(seen):
    call = seen.training()
    if not call or "torch._inductor.compile_fx" in sys.modules:
        return None
    if call.name == "DistributedDataParallel":
        raise Left("DDP splits what is compiled: compare with a copy of the program that compiles (cufrag compare)")
    return "%s.compile() before the first step" % call.name, call.place


def install(torch, seen):
    as_it_was(torch.nn.functional, "cross_entropy", "linear")  # nothing is asked of a run with changes
    as_it_was(torch.Tensor, "to", "cuda", "float")
    import torch._inductor.config
    torch._inductor.config.compile_threads = 1

    def root(module):
        module.forward = torch.compile(module.forward)
    seen.when_root(root)
