# SPDX-License-Identifier: Apache-2.0
"""scratch.py STEP: rasbt/LLMs-from-scratch, ch05/10: 00_orig.py and 01_opt_single_gpu.py of $CODE with the settings of a step; one epoch over a made-up
text. Their tokenizer needs a download; here a token is a word."""
import builtins
import functools
import importlib.util
import os
import re
import sys
import types

import torch

STEPS = {  # file, vocabulary, batch, compiled, changes of 00_orig.py
    "baseline": ("00_orig.py", 50257, 8, False, ()),
    "bfloat16": ("00_orig.py", 50257, 8, False, ("fused", "bf16")),
    "classes": ("00_orig.py", 50257, 8, False, ("fused", "bf16", "classes")),
    "flash": ("01_opt_single_gpu.py", 50257, 8, False, ()),
    "compile": ("01_opt_single_gpu.py", 50257, 8, True, ()),
    "vocabulary": ("01_opt_single_gpu.py", 50304, 8, True, ()),
    "batch": ("01_opt_single_gpu.py", 50304, 32, True, ()),
}


class Words:
    def encode(self, text, **_):
        return [len(w) for w in text.split()]

    def decode(self, tokens):
        return " ".join(str(t) for t in tokens)


def show(*words, **rest):
    plain(*words, **rest)
    found = re.match(r"\s*(Allocated|Reserved) memory: ([0-9.]+) GB", " ".join(str(w) for w in words))
    if found:
        plain("figure", found.group(1).lower(), found.group(2), flush=True)


plain, builtins.print = print, show
file, vocabulary, batch, compiled, changes = STEPS[sys.argv[1]]
sys.modules["tiktoken"] = types.SimpleNamespace(get_encoding=lambda _: Words())
for name in ("matplotlib", "matplotlib.pyplot"):
    sys.modules.setdefault(name, types.ModuleType(name))
with open("middlemarch.txt", "w") as f:
    f.write("word " * (1024 * (batch * 24 + 8)))
if not compiled:
    torch.compile = lambda model: model
spec = importlib.util.spec_from_file_location("step", os.path.join(os.environ["CODE"], "ch05/10_llm-training-speed", file))
step = importlib.util.module_from_spec(spec)
spec.loader.exec_module(step)
if "fused" in changes:
    torch.optim.AdamW = functools.partial(torch.optim.AdamW, fused=True)
if "classes" in changes:
    step.LayerNorm, step.GELU = torch.nn.LayerNorm, functools.partial(torch.nn.GELU, approximate="tanh")
if "bf16" in changes:
    make = step.GPTModel
    step.GPTModel = lambda config: make(config).to(torch.bfloat16)
step.main({"vocab_size": vocabulary, "context_length": 1024, "emb_dim": 768, "n_heads": 12, "n_layers": 12, "drop_rate": 0.1, "qkv_bias": False},
          {"learning_rate": 5e-4, "num_epochs": 1, "batch_size": batch, "weight_decay": 0.1})
