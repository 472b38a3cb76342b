# SPDX-License-Identifier: Apache-2.0
"""Weights in 8 bits, in a program that only calls its model."""
from .help import Left

NUMERICS = "weights are rounded to 8 bits"
GROUP = "precision"


def applies(seen):
    call = next((c for c in seen.calls if not c.training and not seen.backwards and c.trains | (not c.grad)), None)
    if not call or seen.optimizers:
        return None
    try:
        import torchao  # noqa: F401
    except ImportError:
        raise Left("torchao is not installed (bitsandbytes: load the model with its quantized layers)") from None
    return "torchao.quantization.quantize_(%s, Int8WeightOnlyConfig())" % call.name, call.place


def install(torch, seen):
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    seen.when_root(lambda root: quantize_(root, Int8WeightOnlyConfig()))
