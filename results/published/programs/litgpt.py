# SPDX-License-Identifier: Apache-2.0
"""litgpt.py tune|adapter|adapter_v2|generate MODEL QUANTIZATION|none MICROBATCH: a row of litgpt's resource tables, with the modules of its own
repository (commit 8641822, in $CODE), random weights, and one batch of the longest sample that the page names."""
import sys

import lightning as L
import torch
from lightning.fabric.plugins import BitsandbytesPrecision

LONGEST = {"phi-1_5": 1044, "stablelm-base-alpha-3b": 1034, "Llama-2-7b-hf": 1304, "Llama-2-13b-hf": 1304}


def model_of(method, name):
    from importlib import import_module
    module = import_module({"tune": "lit_gpt.lora", "generate": "lit_gpt.model"}.get(method, "lit_gpt." + method))
    lora = dict(r=8, alpha=16, dropout=0.05, to_query=True, to_value=True) if method == "tune" else {}
    return module, module.Config.from_name(name, **lora)


def main(method, name, quantization, micro):
    torch.set_float32_matmul_precision("high")
    plugin = None if quantization == "none" else BitsandbytesPrecision(quantization, torch.bfloat16)
    fabric = L.Fabric(devices=1, precision=None if plugin else "bf16-true", plugins=plugin)
    fabric.launch()
    module, config = model_of(method, name)
    with fabric.init_module(empty_init=method == "generate"):
        model = module.GPT(config)
    if method == "generate":
        generate(fabric, model)
    else:
        train(fabric, method, module, model, LONGEST[name], int(micro), plugin)
    print("figure %.2f" % (torch.cuda.max_memory_allocated() / 1e9))


def generate(fabric, model):
    from generate.base import generate as sample
    model = fabric.setup_module(model.eval())
    prompt = torch.arange(5, device=fabric.device)
    with fabric.init_tensor():
        model.max_seq_length = 55
        model.set_kv_cache(batch_size=1)
    sample(model, prompt, 55, temperature=0.8, top_k=200)


def train(fabric, method, module, model, length, micro, plugin):
    from lit_gpt.utils import chunked_cross_entropy
    mark = "mark_only_%s_as_trainable" % {"tune": "lora", "adapter": "adapter", "adapter_v2": "adapter_v2"}[method]
    getattr(module, mark)(model)
    model = fabric.setup_module(model)
    weights = [p for p in model.parameters() if p.requires_grad]
    if plugin:
        import bitsandbytes
        optimizer = bitsandbytes.optim.PagedAdamW(weights, lr=3e-4)
    else:
        optimizer = torch.optim.AdamW(weights, lr=3e-4)
    optimizer = fabric.setup_optimizers(optimizer)
    model.max_seq_length = length
    for i in range(1 if method.startswith("adapter") else 3):  # at this commit adapters keep their first graph
        tokens = fabric.to_device(torch.randint(0, 1000, (micro, length if i == 0 else 200)).pin_memory())
        logits = model(tokens, lm_head_chunk_size=128)
        logits[-1] = logits[-1][..., :-1, :]
        fabric.backward(chunked_cross_entropy(logits, tokens[..., 1:]) / 32)
    optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
