"""Kernels that PyTorch was compiled for, those of CUB above all, on a card of each capability."""
# python:
#   cards = {}
#   for line in said("list", "gpus", "--csv", "-").splitlines()[1:]:
#       gpu, capability = line.split(",")[0:6:5]
#       cards.setdefault(capability, gpu)
#   cards.pop("", None)
#   assert len(cards) >= 9, cards
#   for capability, gpu in cards.items():
#       run("record --gpu " + gpu)
#       expect("ran on " + capability)
#       never("missing from the pretended card")
from support.small import cuda, F, nn, torch

words, table = cuda.randint(0, 500, (8, 1000)), nn.Embedding(500, 64).cuda()
bag = nn.EmbeddingBag(500, 64, mode="sum").cuda()
conv, norm, final = nn.Conv1d(64, 64, 3, padding=1), nn.GroupNorm(4, 64), nn.Linear(64, 500)
layers, final = nn.Sequential(conv, norm, nn.BatchNorm1d(64)).cuda(), final.cuda()
modules = table, bag, layers, final
optimizer = torch.optim.AdamW([p for module in modules for p in module.parameters()])
for dtype in torch.bfloat16, torch.float16, torch.float32:
    if dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported():  # old releases
        continue
    with torch.autocast("cuda", dtype=dtype, enabled=dtype != torch.float32):
        x = table(words)
        x = x + layers(x.transpose(1, 2)).transpose(1, 2) + bag(words)[:, None]
        heads = x.view(8, 1000, 4, 16).transpose(1, 2)
        x = F.scaled_dot_product_attention(*[heads] * 3, is_causal=True).transpose(1, 2).flatten(2)
        picked = x.flatten(0, 1)[cuda.randint(0, 8000, (5000,))]  # backward: index_put
        loss = F.cross_entropy(final(x).flatten(0, 1), words.flatten())
        loss = loss + x.softmax(-1).cumsum(1).mean() + picked.float().logcumsumexp(0).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
x, flat = cuda.randn(200000), words.flatten()
x.sort(), x.argsort(stable=True), x.topk(100), x.cumsum(0), x.cumprod(0), x.cummax(0), x.histc(50)
x.median(), x.kthvalue(7), (x > 0).nonzero(), x[x > 0], flat.mode(), flat.bincount()
flat.unique(return_inverse=True, return_counts=True), flat.unique_consecutive()
for _ in range(20):  # of memory that held other numbers before
    junk = [cuda.full((n,), -7e8).long() for n in (5, 12, 60, 61)]
    del junk
    weight = cuda.randn(500, 8, requires_grad=True)
    F.embedding_bag(flat[:60].view(5, 12), weight, mode="sum").sum().backward()
torch.isin(flat, flat[:3000]), cuda.randperm(100000), torch.multinomial(x.abs(), 100)
torch.searchsorted(x.sort().values, x), words.sort(1), words.unique(dim=0)
torch.sparse_coo_tensor(torch.stack([flat, flat]), x[:8000], (500, 500)).coalesce()
cuda.zeros(500).index_add(0, flat, x[:8000]).scatter_reduce_(0, flat, x[:8000], "amax")
torch.cuda.synchronize()
print("ran on", "%d.%d" % torch.cuda.get_device_capability())
