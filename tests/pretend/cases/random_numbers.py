"""The same seed and offset of a card's generator give the same numbers; they are the CPU's."""
from support.small import cuda, torch

# run: record
drop = torch.nn.functional.dropout

def drawn():
    torch.manual_seed(0)
    return [cuda.randint(5, 5 + (1 << 40), (300,)), cuda.rand(300), cuda.empty(300).normal_(), drop(cuda.ones(300), 0.3)]

first, second = drawn(), drawn()
print("again", *map(torch.equal, first, second), torch.equal(first[1], cuda.rand(300)))
# expect: again True True True True False
means = [x.mean().item() for x in first[1:3]]
print("spread", first[0].unique().numel(), first[0].min().item() >= 5, 0.4 < means[0] < 0.6, abs(means[1]) < 0.3)
# expect: spread 300 True True True
given = cuda.zeros(300, dtype=torch.int64)  # as compiled code asks for its seeds
torch.manual_seed(0)
torch.ops.aten.randint.low_out(5, 5 + (1 << 40), [300], out=given)
print("given", torch.equal(given, first[0]))
# expect: given True
own, later = (torch.Generator("cuda").manual_seed(0) for _ in range(2))
a, b = (cuda.rand(300, generator=own) for _ in range(2))
later.set_offset(4)
print("own", torch.equal(b, cuda.rand(300, generator=later)), torch.equal(a, b))
# expect: own True False
