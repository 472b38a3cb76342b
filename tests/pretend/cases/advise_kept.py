"""Batches that wait on the card, and metrics that keep graphs."""
from support.small import cuda, nn, step, sys, torch

# python: by_hand("batches_on_host,kept_graphs,kept_tensors,no_grad", "kept_graphs,no_grad")
# match: left out: kept_tensors: could not be tried: the run shows nothing
# match: no_grad  *advise_kept.py:<3>\b
# match: kept_graphs  *advise_kept.py:<1>\b
# match: batches_on_host  *advise_kept.py:<2>\b
m = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
o = torch.optim.SGD(m.parameters(), lr=0.1)
data = [torch.randn(2048, 1024) for _ in range(6)]
data = [x.cuda() for x in data]  # <2>
for x in data:
    step(o, m(x.cuda()).square().mean())
del x
outs, total = [], 0
torch.set_grad_enabled("no_grad" not in sys.argv)  # in training mode, but no backward pass follows
for _ in range(6):
    outs.append(m(cuda.ones(2048, 1024)))  # <3>
del outs
for _ in range(6):
    loss = m(cuda.ones(4096, 1024)).square().mean()
    total = total + (loss.detach() if "kept_graphs" in sys.argv else loss)  # <1>
