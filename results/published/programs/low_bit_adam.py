# SPDX-License-Identifier: Apache-2.0
"""low_bit_adam.py MODEL BATCH [bf16 | amp] [checkpoint] [compile] [offload]: the loop of pytorch/ao's benchmarks/benchmark_low_bit_adam.py with AdamW and made-up
images; offload: with torchao's CPUOffloadOptimizer."""
import sys

import timm
import torch
import torch.nn.functional as F

name, batch, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
model = timm.create_model(name, num_classes=45, **({"img_size": 224} if "dinov2" in name else {}))
if "checkpoint" in words:
    model.set_grad_checkpointing()
if "bf16" in words:
    model.bfloat16()
model.to("cuda")
if "compile" in words:
    model.compile(fullgraph=True)
if "offload" in words or "offload_gradients" in words:
    from torchao.prototype.low_bit_optim import CPUOffloadOptimizer
    optim = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients="offload_gradients" in words, lr=1e-4, fused=True)
else:
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
for step in range(4):
    image, label = torch.randn(batch, 3, 224, 224), torch.randint(0, 45, (batch,))
    if "bf16" in words:
        image = image.bfloat16()
    with torch.autocast("cuda", torch.bfloat16, enabled="amp" in words):
        loss = F.cross_entropy(model(image.to("cuda")), label.to("cuda"))
    loss.backward()
    optim.step()
    optim.zero_grad()
print("figure %.2f" % (torch.cuda.max_memory_allocated() / 1e9))
