# SPDX-License-Identifier: Apache-2.0
"""cuDNN takes the first algorithm that fits, not the fastest of all that it tried with their workspaces."""
from .help import Left

NUMERICS = ""


def applies(seen):
    if seen.torch.backends.cudnn.benchmark and seen.calls:
        raise Left("torch.backends.cudnn.benchmark is on: it tries plans with large workspaces, and a pretended card finds all equally fast; "
                   "record on the card (cufrag record) with and without it")


def install(torch, seen):
    torch.backends.cudnn.benchmark = False
