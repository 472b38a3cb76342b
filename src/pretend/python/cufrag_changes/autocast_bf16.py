# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in bfloat16."""
from .help import each_under, wrap_forward

NUMERICS = "products of matrices are computed in bfloat16"
GROUP = "precision"


def applies(seen):
    return each_under(seen, "call %s under torch.autocast('cuda', dtype=torch.bfloat16)",
                      lambda call: not call.autocast and call.dtype == seen.torch.float32)


def install(torch, seen):
    def around(inner, args, kwargs):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))
