# SPDX-License-Identifier: Apache-2.0
"""Smaller weights: those of bitsandbytes and torchao where they are installed."""
from support.small import cuda, nn, torch

# run: advise --changes weights_8bit,weights_4bit
# match: weights_8bit.*(torchao is not installed|tried)
# match: weights_4bit.*(is not installed|tried)
m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
with torch.no_grad():
    m(cuda.randn(64, 1024))
