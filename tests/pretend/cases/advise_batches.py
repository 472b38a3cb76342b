"""Batches in any number of parts, padding, and what pays."""
import random
from support.small import blocks, F, nn, sys, torch

# trimmed batches differ in length, which saves nothing with the segments of some PyTorch releases
# python:
#   changes = "accumulate=4,trim_padding,pack_sequences,checkpoint_paying,saved_on_host_largest"
#   by_hand(changes, "accumulate=4")
#   assert re.search('"what": "pad each .* [23][0-9] % of the tokens that reach Model are padding', open("a.json").read())
#   for change in changes.split(",")[2:]:
#       match(change + " .* tried ")
#   # rows on the card that are not padded are smaller by hand, too: within 1 %
#   run("record -- trim_padding")
#   assert abs(tried("trim_padding") - peak()) < 0.01 * peak(), (tried("trim_padding"), peak())
#   # a card that is too small for halves
#   run("advise --gpu h100 --capacity 120M --context 0 --margin 0 --changes accumulate", status=...)
#   match("^answer: fits .*: accumulate=[3-8]; .* and completed on it")
by_hand = sys.argv[1:]
random.seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.head = nn.Embedding(1000, 256), nn.Linear(256, 1000)
        self.blocks = nn.ModuleList(blocks(2) + blocks(2, wide=64))

    def forward(self, ids, mask, y):
        x = self.e(ids)
        for b in self.blocks:
            x = x + b(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), y.flatten())

def batch():
    ids = torch.zeros(8, 512, dtype=torch.long)
    for row in ids:
        n = random.randrange(100, 400)
        row[:n] = torch.tensor([random.randrange(1, 1000) for _ in range(n)])
    if "trim_padding" in by_hand:
        ids = ids[:, :int((ids != 0).any(0).nonzero().max()) + 1].contiguous()
    return ids, (ids != 0).long(), torch.where(ids == 0, -100, ids)

m = Model().cuda()
o = torch.optim.AdamW(m.parameters(), fused=True)
parts = 4 if "accumulate=4" in by_hand else 1
for i in range(4):
    ids, mask, y = (t.cuda() for t in batch())
    if parts == 1:
        m(ids, mask, y).backward()
    for i in range(parts if parts > 1 else 0):
        (m(ids.chunk(parts)[i], mask.chunk(parts)[i], y.chunk(parts)[i]) / parts).backward()
    o.step()
    o.zero_grad()
