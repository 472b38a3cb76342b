"""Batches that wait on the card, and metrics that keep graphs."""
from support.small import cuda, nn, step, sys, torch

# python: by_hand("batches_on_host,kept_graphs", "kept_graphs")
# match: kept_graphs  *advise_kept.py:<1>\b
# match: batches_on_host  *advise_kept.py:<2>\b
m = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
o = torch.optim.SGD(m.parameters(), lr=0.1)
data = [torch.randn(2048, 1024) for _ in range(6)]
data = [x.cuda() for x in data]  # <2>
for x in data:
    step(o, m(x.cuda()).square().mean())
del x
total = 0
for _ in range(6):
    loss = m(cuda.ones(4096, 1024)).square().mean()
    total = total + (loss.detach() if "kept_graphs" in sys.argv else loss)  # <1>
