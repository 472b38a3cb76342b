"""--values computed: the CPU runs every operator, so numbers and sizes are the CPU's."""
from support.small import F, nn, torch

# run: record --values computed
# never: not computed
# never: differs
# match 3: ^loss
# expect: alike 8
# verify
torch.manual_seed(0)
words, images, square = torch.randint(0, 500, (4, 65)), torch.randn(4, 6, 9, 10), torch.randn(5, 5)
heads = torch.randn(3, 2, 4, 16, 32)
numbers, alike = torch.arange(3000) * 7 % 19, 0

def both(name, make):
    """make: a list of tensors, by device."""
    global alike
    host, card = ([t.detach().float().cpu() for t in make(device)] for device in ("cpu", "cuda"))
    same = [a.shape == b.shape and torch.allclose(a, b, 1e-2, 1e-2) for a, b in zip(host, card)]
    alike += all(same) and len(host) == len(card)
    if not all(same):
        print(name, "differs in", *((i, host[i], card[i]) for i, s in enumerate(same) if not s))

class Experts(nn.Module):
    """Two of eight experts for each token: how many rows each has follows from the weights."""
    def __init__(self):
        super().__init__()
        self.router, experts = nn.Linear(64, 8), [nn.Linear(64, 64) for _ in range(8)]
        self.experts = nn.ModuleList(experts)

    def forward(self, x):
        weights, choices = F.softmax(self.router(x).float(), -1).topk(2, -1)
        made, self.counts = torch.zeros_like(x), []
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(choices == i)
            self.counts.append(len(token))
            made.index_add_(0, token, expert(x[token]) * weights[token, slot, None])
        return x + made

def trained(device):
    """Losses and gradients' norms of three steps, and what the router chose."""
    torch.manual_seed(1)
    experts, said = Experts(), []
    layers = nn.Embedding(500, 64), nn.Flatten(0, 1), nn.LayerNorm(64), experts, nn.Linear(64, 500)
    net, (x, y) = nn.Sequential(*layers).to(device), (words[:, i:i + 64].to(device) for i in (0, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(3):
        loss = F.cross_entropy(net(x), y.flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        said += [loss, norm, torch.tensor(experts.counts)]
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            print("loss %.4f" % loss.item(), *experts.counts)
    return said

def module(make, x, train=True):
    """What a module gives, gradients, and its buffers."""
    def run(device):
        torch.manual_seed(1)
        net, given = make().to(device).train(train), x.to(device, copy=True).requires_grad_()
        made = net(given)
        (made.flatten() * torch.linspace(0.5, 1.5, made.numel(), device=device)).sum().backward()
        return [made, given.grad] + [p.grad for p in net.parameters()] + list(net.buffers())
    return run

def choices(device):
    """Sizes depend on the numbers."""
    i, x = numbers.to(device), images.to(device).flatten()
    return [(i == 3).nonzero(), i.unique(), i.unique_consecutive(), x[x > 0.5], (x > 1).nonzero(),
            x.masked_select(x < -1), torch.arange(5, device=device).repeat_interleave(i[:5])]

def counted(device):
    i, few = numbers.to(device), torch.arange(9, device=device)
    return [torch.bincount(i), torch.bincount(i, minlength=30), torch.isin(i, few), i.sort()[1],
            torch.searchsorted(few, i), torch.histc(i.float(), 9), i.cumsum(0), few[::2]]

def solved(device):
    a, on = square.to(device), torch.linalg
    a = a @ a.mT + 3 * torch.eye(5, device=device)
    return [on.cholesky(a), on.inv(a), on.eigvals(a).abs().sort()[0], on.matrix_exp(a / 30)]

def attended(device):
    q, k, v = (x.to(device, copy=True).requires_grad_() for x in heads)
    made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    made.square().sum().backward()
    return [made, q.grad, k.grad, v.grad]

for name, make in {
    "training": trained, "attended": attended, "choices": choices, "counted": counted, "solved": solved,
    "norm": module(lambda: nn.BatchNorm2d(6), images), "used norm": module(lambda: nn.BatchNorm2d(6), images, False),
    "net": module(lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), images),
}.items():
    both(name, make)
print("alike", alike)
