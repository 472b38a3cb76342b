"""Random numbers are those of a card: Philox 4x32-10 as published with it (Random123) for counter
and key 0; the real numbers, and the sizes of dropout, were printed by cards."""
from support.small import cuda, torch

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
seeded()
print("normal", ["%.4f" % x for x in cuda.empty(2, 3).normal_().flatten().tolist()])
# expect: normal ['-0.9247', '-0.4253', '-2.6438', '0.1452', '-0.1209', '-0.5797']
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
torch.manual_seed(5)
drop = torch.nn.functional.dropout
zeros = [(drop(cuda.ones(n), 0.3) == 0).sum().item() for n in (77, 6, 1001, 2050)]
print("dropped", *zeros)
# case: computed
# needs: torch>=2.7
# expect: dropped 23 1 304 637
