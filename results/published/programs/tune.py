# SPDX-License-Identifier: Apache-2.0
"""tune.py RECIPE CONFIG [KEY=VALUE...]: a recipe of torchtune's wheel with one of its own configurations, unchanged, as `tune run` starts it. Made up are
the weights (of the model's shapes, in main memory), the tokenizer and the data: samples of 40 to 300 tokens. The figure is the recipe's last peak_memory_active."""
import os
import random
import runpy
import sys
import types

import torch

made = sys.modules["made_up"] = types.ModuleType("made_up")
sys.modules["datasets"] = types.SimpleNamespace(load_dataset=None)  # Hugging Face's, which the wheel imports
import torchtune
from omegaconf import OmegaConf
from torchtune import config, training
from torchtune.datasets import PackedDataset


class Tokenizer:
    pad_id = 0

    def __init__(self, max_seq_len):
        self.max_seq_len = max_seq_len


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        lengths = random.Random(1)
        self.items = [[1 + n % 1000 for n in range(lengths.randint(40, 300))] for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"tokens": self.items[i], "labels": self.items[i]}


class Checkpointer:
    def __init__(self, model, **_):
        with torch.device("meta"):
            shapes = config._utils._get_component_from_path(model)().state_dict()
        self.weights = {name: torch.zeros(w.shape, dtype=torch.bfloat16) for name, w in shapes.items()}

    def load_checkpoint(self, *_, **__):
        return {training.MODEL_KEY: self.weights}

    def save_checkpoint(self, *_, **__):
        pass


class Logger:
    def log_config(self, _):
        pass

    def log_dict(self, values, step):
        self.last = values["peak_memory_active"]
        print("step", step, self.last, flush=True)

    def close(self):
        print("figure %.2f" % self.last, flush=True)


def packed(tokenizer, packed=False):
    return PackedDataset(Samples(500), max_seq_len=tokenizer.max_seq_len, padding_idx=0)


made.__dict__.update(Tokenizer=Tokenizer, packed=packed, Checkpointer=Checkpointer, Logger=Logger)
folder = os.path.join(os.path.dirname(os.path.dirname(torchtune.__file__)), "recipes")
recipe, name = sys.argv[1:3]
settings = OmegaConf.load(os.path.join(folder, "configs", name + ".yaml"))
settings.tokenizer = {"_component_": "made_up.Tokenizer", "max_seq_len": None}
settings.dataset = {"_component_": "made_up.packed", "packed": True}
settings.checkpointer._component_ = "made_up.Checkpointer"
settings.checkpointer.model = "torchtune.models.llama" + ("3_2.llama3_2_3b" if name.startswith("llama3_2/3B") else "3_1.llama3_1_8b")
settings.metric_logger = {"_component_": "made_up.Logger"}
OmegaConf.save(settings, "settings.yaml")
sys.argv = [os.path.join(folder, recipe + ".py"), "--config", "settings.yaml", "log_peak_memory_stats=True", "max_steps_per_epoch=4", "epochs=1"] + sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
