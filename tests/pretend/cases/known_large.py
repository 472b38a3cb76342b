"""In a net too large to be computed, constants are known, and what follows from them."""
from support.small import cuda, F, torch

# run: record
weights = [cuda.randn(1024, 1024) for _ in range(20)]  # a large net
mask = F.pad(cuda.ones(3, 200, dtype=torch.long), (0, 312))[:, None, None, :].expand(3, 1, 512, 512)
print("mask", int((1.0 - mask.to(weights[0].dtype))[:, 0, 0, :].sum()))
# expect: mask 936
given = cuda.empty(3, 64, 4), cuda.empty(4, 4, 3).permute(2, 1, 0)
torch.linalg.qr(cuda.randn(3, 64, 4), out=given)
chosen = torch.where(cuda.ones(2, 1, 3000, 3000, dtype=torch.bool), 0.0, -1.0)[:, 0, 0, :]
chosen[cuda.arange(6000).view(2, 3000) % 1000 == 0] = 5.0
unknown = cuda.randn(2500, 4000) * 2
print("chosen", (chosen > 0).any().item(), chosen.max().item())
# expect: chosen True 5.0
print("finite", torch.isfinite(unknown).all().item(), torch.isinf(unknown).any().item())
# expect: finite True False
zero = torch.zeros_like(unknown)
print("zero", unknown.any().item(), unknown.all().item(), zero.any().item(), unknown.any(1).sum().item())
# expect: zero True True False 2500
print("parts", (zero[0] == 0).all().item(), zero[1, 7].item(), zero[2].abs().max().item())
# expect: parts True 0.0 0.0
print("equal", torch.equal(zero, torch.zeros_like(zero)), torch.equal(zero, zero.clone()), torch.equal(zero, unknown))
# expect: equal True True False
print("close", torch.allclose(unknown, unknown * 3), torch.isclose(zero, torch.zeros_like(zero), atol=0, rtol=0).all().item())
# expect: close True True
few = unknown[:, :8]
print("larger", (unknown > zero).all().item(), few.masked_select(few != -100).numel())
# expect: larger False 20000
part = zero.new_empty(0).set_(zero.untyped_storage()[4096:12288])  # as nanotron's gradients
print("storage", part.numel(), (part == 0).all().item(), part.add_(unknown[0, 0]).sum().item() != 0)
# expect: storage 2048 True True
lengths = torch.ones_like(cuda.randn(2, 30000), dtype=torch.long).sum(-1)
print("lengths", lengths.tolist())
# expect: lengths [30000, 30000]
print("modes", [cuda.randint(0, 9, (n,)).mode()[0].item() < 9 for n in (100, 100000)])
# expect: modes [True, True]
