"""What is small enough to be computed is what the CPU says."""
from support.small import cuda, nn, torch

# run: record
x = cuda.tensor([1, 2, 3])
mask = cuda.tensor([0, 1, 0, 0, 1]) > 0
print("small", x.sum().item(), x.max().item(), mask.nonzero().tolist(), torch.equal(x, x.clone()))
# expect: small 6 3 [[1], [4]] True
print("unique", torch.unique(cuda.tensor([5, 1, 2, 1])).tolist())
# expect: unique [1, 2, 5]
with torch.inference_mode():
    rows, columns = torch.meshgrid(x, x.flip(0), indexing="ij")
    print("inference", (rows * columns).tolist(), torch.broadcast_tensors(x, rows)[0].sum().item())
    # expect: inference [[3, 2, 1], [6, 4, 2], [9, 6, 3]] 18

torch.manual_seed(0)
net, x = nn.Sequential(nn.Linear(24, 256), nn.Tanh(), nn.Linear(256, 6)), torch.randn(2048, 24)
expected = net(x).sum().item()
print("net", abs(net.cuda()(x.cuda()).sum().item() - expected) < 0.01 * abs(expected) + 0.01)
# expect: net True
points = torch.tensor([[float(i // 2), 0.0] for i in range(1000)]).cuda()
print("near", len((torch.cdist(points, points) < 0.5).nonzero()))
# expect: near 2000

table = nn.EmbeddingBag(100, 8, sparse=True).cuda()
table(torch.tensor([[5, 7, 5], [7, 5, 9]]).cuda()).sum().backward()
places = torch.tensor([[0, 1, 0, 1, 3], [2, 0, 2, 1, 1]]).cuda()
matrix = torch.sparse_coo_tensor(places, cuda.empty(5, 50000), (4, 3, 50000))
print("places", *(m.coalesce().indices().tolist() for m in (table.weight.grad, matrix)))
# expect: places [[5, 7, 9]] [[0, 1, 1, 3], [2, 0, 1, 1]]
rows = torch.tensor([[1.0, 2, 1, 1], [3, 4, 3, 5]]).cuda()
print("slices", rows.unique(dim=1).tolist(), [len(x) for x in rows.t().unique_consecutive(dim=0, return_counts=True)])
# expect: slices [[1.0, 1.0, 2.0], [3.0, 5.0, 4.0]] [4, 4]
numbers = torch.arange(9).cuda()
print("masked", numbers[numbers > 3].tolist())
# expect: masked [4, 5, 6, 7, 8]

many = [cuda.zeros(32 << 20, dtype=torch.long) for _ in range(10)]  # too many
del many
edges = (torch.arange(5_000_000) % 1000).cuda()
print("edges", len((edges == 7).nonzero()), int(torch.bincount(edges).max()))
# expect: edges 5000 5000

some = torch.randint(0, 1000, (300, 4000))
made = [lambda x: x.sort(1), lambda x: x.topk(5), lambda x: x.max(0), lambda x: x.cumsum(1),
        lambda x: (x > 500).prod(0), lambda x: (x > 500).sum(1), lambda x: (x * (x > 900)).sum(),
        lambda x: x.unique(return_inverse=True, return_counts=True),
        lambda x: x.t().clone() + x.t(), lambda x: x.flip(0).t().contiguous()]
for f in made:
    both = f(some), f(some.cuda())
    host, card = ([x.cpu() for x in (y if isinstance(y, tuple) else (y,))] for y in both)
    print("alike", all(map(torch.equal, host, card)))
# match 10: ^alike True
# never: alike False
