"""The loss of a language model in chunks, with and without logits in what the model gives."""
from torch.utils.checkpoint import checkpoint
from support.small import cuda, F, nn, step, sys, torch

# python:
#   log = run("advise --changes chunked_loss,accumulate --json a.json")
#   match("chunked_loss  *advise_chunked_loss.py:<1> ")
#   match("accumulate  *advise_chunked_loss.py:<2> ")
#   run("record -- hand")
#   assert tried("chunked_loss") == peak(), (tried("chunked_loss"), peak())
# run: advise --changes chunked_loss -- used
# match: left out: chunked_loss: .*uses logits after their loss
e, head = nn.Embedding(8000, 128).cuda(), nn.Linear(128, 8000, bias=False).cuda()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.head, self.loss = e, head, nn.CrossEntropyLoss()

    def part(self, h, y):
        return F.cross_entropy(self.head(h).float(), y, reduction="sum")

    def forward(self, x):
        h = self.e(x)
        if "hand" in sys.argv:
            h, y, total = h[:, :-1].reshape(-1, 128), x[:, 1:].reshape(-1), 0
            for a, b in zip(h.chunk(8), y.chunk(8)):
                total = total + checkpoint(self.part, a, b, use_reentrant=False)
            return None, total / (y != -100).sum()
        logits = self.head(h).float()
        left = logits[..., :-1, :].contiguous().view(-1, 8000)
        return logits, self.loss(left, x[:, 1:].reshape(-1))  # <1>

m = Model()
o = torch.optim.AdamW(m.parameters())
for i in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits, loss = m(cuda.randint(0, 8000, (4, 257)))  # <2>
    step(o, loss)
    if "used" in sys.argv:
        logits.argmax(-1)
