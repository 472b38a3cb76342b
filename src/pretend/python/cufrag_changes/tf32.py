# SPDX-License-Identifier: Apache-2.0
"""TF32 in products of matrices."""
from .help import Left

NUMERICS = "products of matrices are rounded to 10 bits"


def applies(seen):
    if seen.training():
        raise Left("needs no trial: TF32 changes how products are computed, not what is stored")


def install(torch, seen):
    torch.backends.cuda.matmul.allow_tf32 = True
