# SPDX-License-Identifier: Apache-2.0
"""titan.py [VARIABLE=VALUE...] FILE [OPTION...]: train.py of torchtitan ($CODE) with the settings of FILE, on made-up texts with a made-up
tokenizer of 128,256 words.

The figure is the peak reserved memory of its last log line.
"""
import base64
import importlib
import json
import logging
import os
import random
import re
import runpy
import sys
import types


def tokenizer(name):
    """A tokenizer's file: 128,000 words, each of one to three bytes; the program adds 256 special ones."""
    with open(name, "wb") as f:
        for rank in range(128000):
            size = 1 if rank < 256 else 2 if rank < 256 + 65536 else 3
            f.write(base64.b64encode((rank - (0, 256, 256 + 65536)[size - 1]).to_bytes(size, "big")) + b" %d\n" % rank)
    return os.path.abspath(name)


def texts(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "data.json"), "w") as f:
        for _ in range(200):
            f.write(json.dumps({"text": " ".join("".join(random.choices("abcdefghij", k=5)) for _ in range(2000))}) + "\n")
    return os.path.abspath(folder)


class Last(logging.Handler):
    gib = None

    def emit(self, record):
        found = re.search(r"memory: *([0-9.]+)GiB", re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage()))
        self.gib = found[1] if found else self.gib


board = types.ModuleType("torch.utils.tensorboard")
board.SummaryWriter = lambda *_, **__: types.SimpleNamespace(add_scalar=lambda *_, **__: None, close=lambda: None)
sys.modules["torch.utils.tensorboard"] = board
last = Last()
logging.getLogger().addHandler(last)
words = tokenizer("tokenizer.model")
while "=" in sys.argv[1]:
    os.environ.update([sys.argv.pop(1).split("=", 1)])
importlib.import_module("torch").manual_seed(0)  # torchtitan reads its seed back as uint64, which PyTorch 2.7 cannot if it has 64 bits
script = os.path.join(os.environ["CODE"], "train.py")
if not os.path.exists(script):  # since 2025
    script = os.path.join(os.environ["CODE"], "torchtitan/train.py")
sys.argv = [script, "--job.config_file", sys.argv[1], "--job.dump_folder", os.path.abspath("out"), "--model.tokenizer_path", words,
            "--training.dataset", "c4_test", "--training.dataset_path", texts("texts"), "--training.steps", "4", "--metrics.log_freq", "2",
            *sys.argv[2:]]
os.chdir(os.environ["CODE"])
sys.path.insert(0, os.environ["CODE"])
runpy.run_path(script, run_name="__main__")
print("figure reserved", last.gib, flush=True)
