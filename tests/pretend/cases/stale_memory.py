"""Old contents of memory are not taken for values; results that are not computed
fill no pages of the host."""
import resource
from support.small import cuda, torch

# run: record
stale = cuda.full((200000,), -1)  # NaN, if taken for other numbers
address = stale.data_ptr()
a, b = cuda.empty(1000, 4000), cuda.empty(4000, 400)
del stale
product = a @ b
print("stale", product.data_ptr() == address, torch.equal(product, product), product.cpu().unique().tolist(), product[:9].cpu().max().item())
# expect: stale True True [1.0] 1.0
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.nn.functional.dropout(cuda.empty(16 << 20))
print("pages", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 20000)
# expect: pages True

@torch.jit.script
def masked(x, low: int, high: int):
    inside = (x >= low) & (x < high)
    return inside * (x - low * inside), ~inside

weight, x = cuda.randn(256, 64), cuda.arange(8) * 20
for step in range(5):  # torch.jit fuses these operators from the third call on
    before = [cuda.full((8,), 1 << 40) for _ in range(4)]
    del before
    choice, outside = masked(x, 0, 100)
    rows = torch.nn.functional.embedding(choice, weight)
print("scripted", tuple(rows.shape), x.tolist()[7])
# expect: scripted (8, 64) 140

held = [cuda.zeros(60 << 20, dtype=torch.int32) for _ in range(10)]  # more than are kept
unknown = cuda.empty(40 << 20, dtype=torch.int32)
print("many", len(held), int((unknown[:8] * 0).sum()))
# expect: many 10 0
