"""What advise says of a change is what the same change needs when made by hand."""
import random
from torch.utils.checkpoint import checkpoint
from support.small import blocks, cuda, nn, sys, torch

# python: by_hand("checkpoint,sgd,accumulate,kept_tensors", bytes_off=0)
# check: '"where": "advise_changes.py:%s"' % filled("<1>") in open("a.json").read()
# check: not left()
random.seed(3)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(blocks(6, 512, 2048))

    def forward(self, x):
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False) if "checkpoint" in sys.argv else b(x)
        return x.square().mean()

m, kept = Net().cuda(), []
o = (torch.optim.SGD if "sgd" in sys.argv else torch.optim.AdamW)(m.parameters(), lr=0.1)
for i in range(5):
    x = cuda.randn(2 * random.randrange(1000, 4000), 512)
    for h in x.chunk(2) if "accumulate" in sys.argv else [x]:
        loss = m(h) / len([x, x] if "accumulate" in sys.argv else [x])
        loss.backward()
    o.step()
    o.zero_grad()
    kept.append(x.cpu() if "kept_tensors" in sys.argv else x)  # <1>
