# SPDX-License-Identifier: Apache-2.0
"""master.py CONFIG STEPS: DeepSpeedExamples' training/bf16_master_weight ($CODE), with the arguments of its README, on its own random tokens of
GPT-2's 50,257 words.

The model is made on the card instead of on the host, which would need 27 GB; so the peak counts from the end of the initialization, where each rank
has its part. The figures are those of the line SUMMARY.
"""
import builtins
import importlib
import os
import re
import sys

import torch


def on_card(make):
    def made(*args, **kwargs):
        with torch.device("cuda"):
            return make(*args, **kwargs)
    return made


def then_reset(initialize):
    def initialized(*args, **kwargs):
        result = initialize(*args, **kwargs)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return result
    return initialized


def show(*words, **rest):
    plain(*words, **rest)
    for name, value in re.findall(r"(peak|alloc)_mem_bytes=(\d+)", str(words[0]) if words else ""):
        plain("figure", name, "%.4f" % (int(value) / 2**30), flush=True)


folder = os.path.join(os.environ["CODE"], "training/bf16_master_weight")
sys.path.insert(0, folder)
train = importlib.import_module("train")
train.SimpleTransformerModel = on_card(train.SimpleTransformerModel)
train.deepspeed.initialize = then_reset(train.deepspeed.initialize)
plain, builtins.print = print, show
sys.argv = ["train.py", "--deepspeed_config", os.path.join(folder, "configs", sys.argv[1]), "--num_layers", "32", "--hidden_dim", "4096",
            "--num_heads", "32", "--batch_size", "1", "--num_steps", sys.argv[2], "--activation_checkpointing", "--vocab_size", "50257",
            "--seed", "42"]
train.main()
