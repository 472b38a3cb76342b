# SPDX-License-Identifier: Apache-2.0
"""Weights in 8 bits, in a program that only calls its model."""
from .help import as_it_was, before_card, names, needs, only_called

NUMERICS = "weights are rounded to 8 bits"
GROUP = "precision"


def applies(seen):
    calls = only_called(seen)
    if not calls:
        return None
    needs("torchao")
    return "torchao.quantization.quantize_(model, Int8WeightOnlyConfig()) of %s" % names(calls), calls[0].place


def install(torch, seen):
    as_it_was(torch.nn.functional, "linear")

    def narrow(model):  # imported here: the program may be importing it at this moment
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        quantize_(model, Int8WeightOnlyConfig())
    before_card(torch, seen, narrow)
