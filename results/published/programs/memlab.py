# SPDX-License-Identifier: Apache-2.0
"""memlab.py: the examples of pytorch_memlab's README; what the allocator holds, in bytes of the page's units."""
import torch
from torch import nn


def line(name):
    print("figure %s %.2f" % (name, torch.cuda.memory_stats()["active_bytes.all.peak"] / 1024))


def held(name):
    print("figure %s %.2f" % (name, (torch.cuda.memory_allocated()) / 2**20))


def profiled():
    kept = [nn.Linear(100, 100).cuda()]
    line("line1")
    kept.append(nn.Linear(100, 100).cuda())
    line("line2")
    nn.Linear(100, 100).cuda()
    line("line3")
    print("figure reserved %.2f" % (torch.cuda.memory_reserved() / 2**20))


profiled()
layer = nn.Linear(1024, 1024).cuda()
held("linear")
x = torch.empty(512, 1024, device="cuda")
held("input")
del layer, x
lstm = nn.LSTM(1024, 1024).cuda()
x = torch.empty(10, 10, 1024, device="cuda")
held("lstm")
