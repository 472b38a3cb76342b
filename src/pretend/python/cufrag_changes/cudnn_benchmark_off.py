# SPDX-License-Identifier: Apache-2.0
"""cuDNN takes the first algorithm that fits, not the fastest of all that it tried with their workspaces."""


def applies(seen):
    if seen.torch.backends.cudnn.benchmark and seen.calls:
        return "torch.backends.cudnn.benchmark = False: no search with large workspaces, and maybe slower convolutions", ""


def install(torch, seen):
    torch.backends.cudnn.benchmark = False
    vars(type(torch.backends.cudnn))["benchmark"].setter = lambda value: None
