"""What cannot act within a graph of torch.compile says so."""
from support.small import cuda, F, nn, step, sys, torch

# run: advise --changes chunked_loss,saved_on_host,sgd
# match: call Sequential under
# match: ^  sgd
# match:  3 steps each
# match: left out: chunked_loss: has no effect within torch.compile's graph, in which Sequential makes its logits
# run: advise --changes chunked_loss,saved_on_host,sgd -- function
# match 2: left out: .*: has no effect within torch.compile's graph: .*compiled at advise_graphs.py:<1>
layers = [nn.Linear(64, 64) for _ in range(16)]
m = nn.Sequential(nn.Embedding(4000, 64), *layers, nn.Linear(64, 4000)).cuda()
o = torch.optim.AdamW(m.parameters())
f = torch.compile(m, backend="eager") if len(sys.argv) < 2 else m

def train(x):
    return F.cross_entropy(f(x).flatten(0, 1), x.flatten())

train = torch.compile(train, backend="eager") if len(sys.argv) > 1 else train  # <1>
for i in range(3):
    step(o, train(cuda.randint(0, 4000, (8, 256))))
