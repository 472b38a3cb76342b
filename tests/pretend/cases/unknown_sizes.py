"""Sizes that follow from unknown numbers: half of a mask, equal experts; info says so."""
from support.small import cuda, F, nn, torch

# run: record
unknown = nn.Linear(512, 8, device="cuda")(cuda.empty(4000, 512)).detach()
kept = (unknown[:, 0] >= 0.001).nonzero().flatten()
print("bounds", len(kept), len(kept.unique()), len((unknown.argmax(1) >= 1).nonzero()) < 4000)
# expect: bounds 4000 4000 True
print("masked", unknown[unknown[:, 0] > 0].shape[0], unknown.masked_select(unknown > 0).numel())
# expect: masked 2000 16000
several = cuda.empty(64, 3000).unique(dim=0, return_inverse=True)[0]
print("slices", several.shape[0], unknown.unique(dim=1).shape[1])
# expect: slices 64 8
chosen = nn.Linear(64, 128, device="cuda")(cuda.empty(40_000, 64)).topk(8).indices
experts = F.one_hot(chosen, 128).permute(2, 1, 0)
hit = (experts.sum(dim=(-1, -2)) > 0).nonzero()
tokens = ({len(torch.where(experts[i])[0]) for i in j} for j in (hit.flatten(), hit))
print("experts", len(hit), *tokens)
# expect: experts 128 {2500} {2500}
codes = cuda.empty(1 << 22, 16).argmin(1).to(torch.uint8)  # of four bits
print("codes", int((codes >> 1).max()), int((codes[:1000] >> 1).max()))  # few are computed
# expect: codes 0 7
# run: info run.cft
# match 2: invented 1 x at .*: how many elements a mask selects
