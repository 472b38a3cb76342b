#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuDNN's batch normalization takes beside its tensors: src/pretend/libraries/cudnn_norm.c is the rule.

    norm_workspaces.py > OUT.csv        # on a card, or recorded without one

A line: type,layout,images,channels,sides,forward,reserve,backward; the last three in bytes. What cannot run is left out.
"""
import math
import random

import torch

TYPES = {"fp32": torch.float32, "fp16": torch.float16}
CHANNELS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 20, 24, 32, 36, 40, 48, 60, 64, 72, 80, 88, 96, 104, 120, 128, 144, 160, 192, 200, 224, 256, 320,
            384, 400, 448, 512, 576, 640, 720, 768, 832, 960, 1024, 1152, 1280, 1536, 1664, 1920, 2048, 2304]
SIDES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 7), (8, 8), (10, 10), (12, 12), (14, 14), (16, 16), (20, 20), (28, 28), (32, 32), (38, 38),
         (56, 56), (64, 64), (75, 75), (112, 112), (150, 150), (7, 12), (33, 50), (1, 64), (8, 8, 8), (16, 16, 16), (4, 28, 28)]


def requested(name):
    return torch.cuda.memory_stats()["requested_bytes.all." + name]


def beside(run):
    """Bytes at the peak of run, without the tensors that it returns; and those tensors."""
    torch.cuda.reset_peak_memory_stats()
    before = requested("current")
    kept = run()
    return requested("peak") - before - sum(t.numel() * t.element_size() for t in kept), kept


def measure(name, layout, images, channels, sides):
    form = torch.contiguous_format if layout == "nchw" else torch.channels_last if len(sides) == 2 else torch.channels_last_3d
    x = torch.empty(images, channels, *sides, device="cuda", dtype=TYPES[name]).contiguous(memory_format=form)
    g = torch.empty_like(x)
    w, b, mean, var = (torch.ones(channels, device="cuda") for _ in range(4))
    forward, (_, m, v, reserve) = beside(lambda: torch.ops.aten.cudnn_batch_norm(x, w, b, mean, var, True, 0.1, 1e-5))
    backward, _ = beside(lambda: torch.ops.aten.cudnn_batch_norm_backward(x, g, w, mean, var, m, v, 1e-5, reserve))
    print(name, layout, images, channels, "x".join(map(str, sides)), forward, reserve.numel(), backward, sep=",")


def main():
    rng = random.Random(4)
    print("type,layout,images,channels,sides,forward,reserve,backward")
    for i in range(6000):
        channels, sides = rng.choice(CHANNELS + [rng.randrange(1, 2100)] * 20), rng.choice(SIDES)
        images = rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256])
        if images * channels * math.prod(sides) < 1 << 28:
            measure(rng.choice(list(TYPES)), "nchw" if i % 8 == 0 else "nhwc", images, channels, sides)


if __name__ == "__main__":
    main()
