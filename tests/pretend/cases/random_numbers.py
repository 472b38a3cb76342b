"""Random integers and uniform numbers are those of a card: Philox 4x32-10 as published with it
(Random123) for counter and key 0; the real numbers were printed by cards. Others are the CPU's, the
same for the same seed."""
from support.small import cuda, F, torch

# case: drawn computed
# python: run("record --values computed" if case == "computed" else "record")
words = 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8
card = torch.cuda.get_device_properties(0)
threads = card.multi_processor_count * card.max_threads_per_multi_processor

def seeded():
    torch.manual_seed(0)

seeded()
drawn = cuda.randint(0, 1 << 27, (3 * threads + 1,))[::threads].tolist()
seeded()
large = cuda.randint(5, 5 + (1 << 40), (2,))
print("words", drawn == [w % (1 << 27) for w in words], large[0].item() - 5 == (words[0] << 32 | words[1]) % (1 << 40))
# expect: words True True
seeded()
print("reals", ["%.4f" % x for x in cuda.rand(5).tolist()])
# expect: reals ['0.3990', '0.5167', '0.0249', '0.9401', '0.9459']
given = cuda.zeros(2, dtype=torch.int64)  # as compiled code asks for its seeds
seeded()
torch.ops.aten.randint.low_out(5, 5 + (1 << 40), [2], out=given)
print("given", torch.equal(given, large))
# expect: given True
own, later = (torch.Generator("cuda").manual_seed(0) for _ in range(2))
a, b = (cuda.rand(300, generator=own) for _ in range(2))
later.set_offset(4)
print("own", ["%.4f" % x for x in a[:2].tolist()], torch.equal(b, cuda.rand(300, generator=later)), torch.equal(a, b))
# expect: own ['0.3990', '0.5167'] True False

def others():
    seeded()
    return [cuda.empty(300).normal_(), cuda.randn(300), F.dropout(cuda.ones(300), 0.3)]

first, second = others(), others()
print("others", *map(torch.equal, first, second), torch.equal(*first[:2]), abs(first[0].mean().item()) < 0.3)
# expect: others True True True False True
