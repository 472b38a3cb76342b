# SPDX-License-Identifier: Apache-2.0
"""vit.py SCRIPT: a script of rasbt/pytorch-memory-optim, unchanged, in $CODE: ViT with random weights, and made-up pictures in place of CIFAR-10."""
import builtins
import os
import re
import runpy
import sys
import types

import torch
import torchvision


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.zeros(3, 224, 224), 0


def loaders(batch_size, **_):
    return tuple(torch.utils.data.DataLoader(Pictures(batch_size * n), batch_size) for n in (12, 2, 2))


def show(*words, **rest):
    text = " ".join(str(w) for w in words)
    found = re.match(r"(GPU )?Memory used: ([0-9.]+) GB", text)
    plain(*words, **rest)
    if found:
        plain("figure", found.group(2), flush=True)


plain, builtins.print = print, show
sys.modules["local_utilities"] = types.SimpleNamespace(get_dataloaders_cifar10=loaders)
sys.modules["watermark"] = types.SimpleNamespace(watermark=lambda **_: "")
for name in ("vit_l_16", "vit_b_16", "vit_b_32"):
    make = getattr(torchvision.models, name)
    setattr(torchvision.models, name, lambda weights=None, make=make, **more: make(**more))
runpy.run_path(os.path.join(os.environ["CODE"], sys.argv[1]), run_name="__main__")
