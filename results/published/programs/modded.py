# SPDX-License-Identifier: Apache-2.0
"""modded.py LOG: the program that a log of KellerJordan/modded-nanogpt ($CODE) begins with, for eight iterations, with made-up tokens."""
import builtins
import os
import re
import struct
import sys

import torch


def show(*words, **rest):
    found = re.findall(r"peak memory (?:consumption|allocated): (\d+) MiB(?: reserved: (\d+) MiB)?", " ".join(str(w) for w in words))
    plain(*words, **rest)
    for allocated, reserved in found:
        plain("figure allocated", allocated, flush=True)
        if reserved:
            plain("figure reserved", reserved, flush=True)


def tokens(name, count):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        f.truncate(1024 + 2 * count)


plain, builtins.print = print, show
for kind, count in (("train_000001", 20 << 20), ("train_000002", 20 << 20), ("val_000000", 12 << 20)):
    tokens("data/fineweb10B/fineweb_%s.bin" % kind, count)
os.makedirs("bin", exist_ok=True)
with open("bin/nvidia-smi", "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
    f.write("#!/bin/sh\n")  # its output goes into the log
os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
with open(os.path.join(os.environ["CODE"], sys.argv[1]), errors="replace") as f:
    text = f.read().split("\n" + "=" * 100)[0]
text, changed = re.subn(r"(?m)^(\s+num_iterations\s*(?::\s*int\s*)?=\s*)\d+", r"\g<1>8", text)
assert changed == 1, changed
with open("train_gpt.py", "w") as f:
    f.write(text)
sys.argv = ["train_gpt.py"]
if "LOCAL_RANK" not in os.environ:
    os.environ.update(LOCAL_RANK=os.environ.get("RANK", "0"))
exec(compile(text, "train_gpt.py", "exec"), {"__name__": "__main__", "__file__": "train_gpt.py"})
