"""Copies of logits, and outputs that are not needed."""
from support.small import cuda, F, nn, step, sys, torch

# python: by_hand("logits_not_float,outputs_off")
# match: logits_not_float  *advise_unneeded.py:<1>\b

class Config:
    output_hidden_states = "outputs_off" not in sys.argv

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config, self.e, self.head = Config(), nn.Embedding(8000, 128), nn.Linear(128, 8000, bias=False)
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(8))
        self.low, self.up = nn.Linear(128, 16), nn.Linear(16, 128)  # far wider than what it is made of, but no head

    def forward(self, x):
        h, all = self.e(x), []
        for layer in self.layers:
            h = h + self.up(self.low(F.layer_norm(layer(h).float(), (128,)).to(h.dtype)))  # a copy that is no logits
            all.append(h * 2)
        logits = self.head(h)
        logits = logits if "logits_not_float" in sys.argv else logits.float()  # <1>
        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
        return {"loss": loss, "hidden_states": all if self.config.output_hidden_states else None}

m = Model().to(torch.bfloat16).cuda()
o = torch.optim.SGD(m.parameters(), lr=0.1)
for i in range(3):
    out = m(cuda.randint(0, 8000, (8, 512)))
    step(o, out["loss"])
