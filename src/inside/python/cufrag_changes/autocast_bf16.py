# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in bfloat16."""
from .help import wrap_forward

NUMERICS = "products of matrices are computed in bfloat16"
GROUP = "precision"


def applies(seen):
    call = seen.training()
    if not call or call.autocast or call.dtype != seen.torch.float32:
        return None
    return "call %s under torch.autocast('cuda', dtype=torch.bfloat16)" % call.name, call.place


def install(torch, seen):
    def around(inner, args, kwargs):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))
