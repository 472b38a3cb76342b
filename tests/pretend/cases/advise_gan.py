"""Two models and their optimizers: a change is made in both, and names both."""
from support.small import cuda, nn, sys, torch

# python: by_hand("checkpoint,sgd,saved_on_host,step_in_backward,accumulate", "checkpoint,sgd")
# match: call Generator and Critic under
# match: each of the 9 blocks Sequential
# match: SGD without momentum in place of Adam \(2 optimizers\)
# match: left out: step_in_backward: 2 optimizers
# match: left out: accumulate: .* outside of Generator and Critic

def block(i, o):
    return nn.Sequential(nn.Linear(i, 512), nn.ReLU(), nn.Linear(512, o))

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(block(256, 256) for _ in range(6))

    def forward(self, x):
        for b in self.blocks:
            x = torch.utils.checkpoint.checkpoint(b, x, use_reentrant=False) if "checkpoint" in sys.argv else b(x)
        return x

class Critic(Generator):
    def __init__(self):
        super().__init__()
        self.blocks = self.blocks[:3]

def noise(n=4096):
    return cuda.randn(n, 256)

def update(optimizer, loss):
    loss.backward()
    optimizer.step()
    og.zero_grad()
    od.zero_grad()

g, d = Generator().cuda(), Critic().cuda()
kind = torch.optim.SGD if "sgd" in sys.argv else torch.optim.Adam
og, od = kind(g.parameters(), lr=0.1), kind(d.parameters(), lr=0.1)
with torch.no_grad():
    g(noise(8))
for i in range(3):
    fake = g(noise())
    update(od, d(noise()).mean() - d(fake.detach()).mean())
    update(og, d(fake).mean())
