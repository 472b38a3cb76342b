"""A graph of torch.compile stays one, and a Sequential (PyTorch 2.11) stays uncompiled."""
from support.small import blocks, cuda, nn, step, sys, torch

# case: module sequential
# python: by_hand("sgd", more="{case}")
# match: sgd  *advise_compiled.py:<1>\b

class Net(nn.Module):
    def __init__(self, *blocks):
        super().__init__()
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(x)

m = (Net if "module" in sys.argv else nn.Sequential)(*blocks(3)).cuda()
o = (torch.optim.SGD if "sgd" in sys.argv else torch.optim.AdamW)(m.parameters(), lr=0.1)  # <1>
m.compile(fullgraph=True)
for i in range(3):
    y = m(cuda.randn(4096, 256))
    step(o, nn.functional.cross_entropy(y, cuda.zeros(4096, dtype=torch.long)))
