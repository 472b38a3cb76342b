# SPDX-License-Identifier: Apache-2.0
"""Weights in 4 bits, in a program that only calls its model."""
from .help import Left, as_it_was, before_card, names, needs, only_called

NUMERICS = "weights are rounded to 4 bits"
GROUP = "precision"


def applies(seen):
    calls = only_called(seen)
    if not calls:
        return None
    try:
        needs("bitsandbytes")
        return "bitsandbytes.nn.Linear4bit in place of each Linear of %s" % names(calls), calls[0].place
    except Left as why:
        try:
            needs("torchao")
        except Left as other:
            raise Left("%s; %s" % (why, other)) from None
    return "torchao.quantization.quantize_(model, Int4WeightOnlyConfig(int4_packing_format=\"tile_packed_to_4d\")) of %s" % names(calls), calls[0].place


def install(torch, seen):
    as_it_was(torch.nn.functional, "linear")
    before_card(torch, seen, lambda model: narrow(torch, model))


def narrow(torch, model):
    try:  # here, since the program may be importing them when this is installed
        from bitsandbytes.nn import Linear4bit, Params4bit
    except ImportError:
        from torchao.quantization import Int4WeightOnlyConfig, quantize_
        return quantize_(model, Int4WeightOnlyConfig(int4_packing_format="tile_packed_to_4d"), device="cuda")
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear and not name.endswith("head"):
                four = Linear4bit(child.in_features, child.out_features, child.bias is not None, device="meta")
                four.weight = Params4bit(child.weight.data, requires_grad=False, quant_type="nf4", module=four)
                four.bias = child.bias
                setattr(module, name, four.cuda() if child.weight.is_cuda else four)  # rounds
