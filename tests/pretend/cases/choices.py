"""Tables of a router's choices, too large to be computed: the CPU answers the same."""
from support.small import cuda, F, nn, torch

# run: record
# expect: differ []
# expect: counts [2500.0] 128
# expect: large [2048] 16384
# run: record --values skewed=4
# match: ^counts .*10000.0\] 128$
# run: record --values worst
# expect: counts [0.0, 40000.0] 8
tokens, experts = 20000, 64
chosen = torch.rand(tokens, experts).topk(4).indices
answers = []
for device in ("cpu", "cuda"):
    index, hit = chosen.to(device), torch.tensor([7, 3], device=device)
    zeros = torch.zeros(tokens, experts, device=device, dtype=torch.bfloat16)
    table = zeros.scatter(1, index, 1)
    across = torch.zeros(experts, tokens, device=device).scatter_(0, index.t(), 1)
    named, weights = (torch.zeros(tokens, experts, device=device) for _ in range(2))
    weights.scatter_(1, index, torch.rand(tokens, 4).to(device) + 1)
    named[torch.arange(tokens), index[:, 0]] = 1
    named[index[:2, 1], torch.tensor([-1, -2])] = 1
    found = [
        table.long().sum(0), table.sum(), F.one_hot(index, experts).sum(1).sum(0), across.sum(-1),
        across[9].nonzero(), torch.where(table.t()[hit])[1], (table > 0)[100:300].nonzero(),
        table.index_select(1, hit).nonzero(), across.any(0).sum(), (weights != 0).sum(1).unique(),
        table.t().contiguous()[5].nonzero().flatten(), table[:, ::2].nonzero()[:50],
        (table == 1).sum(1).max(), named.sum(0), (named == 1).nonzero()]
    parts = [len(t.nonzero()) for t in zeros.scatter(1, index[:, :2], 1).split(5000)]
    answers.append([t.tolist() for t in found] + [parts, len(weights[named == 1])])
print("differ", [i for i, (a, b) in enumerate(zip(*answers)) if a != b])
router = nn.Linear(64, 128, device="cuda", dtype=torch.bfloat16)
chosen = router(cuda.empty(40000, 64, dtype=torch.bfloat16)).topk(8).indices
table = cuda.zeros(40000, 128).scatter_(1, chosen, 1)
# a loop over the experts runs those that some token chose, however many tokens there are
places = (F.one_hot(chosen, 128).sum((0, 1)) > 0).nonzero()
print("counts", sorted(set(table.sum(0).tolist())), len(places))
# a table of floating-point zeros, as Megatron-LM's router makes it, in a net that is not computed
net = [cuda.randn(1024, 1024) for _ in range(40)]
scores = cuda.randn(8192, 1024) @ net[0][:8].t()
chosen = torch.zeros_like(scores).int().scatter(1, scores.topk(2, 1).indices, 1).bool()
print("large", sorted(set(chosen.sum(0).tolist())), len(chosen.nonzero()))
