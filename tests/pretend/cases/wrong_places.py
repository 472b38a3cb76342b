"""Places that are not there end a program, as on a card, but with a line; unknown ones do not."""
from support.small import cuda, F, nn, torch

# a compiler that links C++'s library statically, as some images have it
# python:
#   write("static-c++", '#!/bin/sh\nexec c++ -static-libstdc++ "$@"\n')
#   os.chmod("static-c++", 0o755)
#   run("record", XDG_CACHE_HOME=os.path.abspath("cache"), CXX=os.path.abspath("static-c++"))
# match 9: out of range.*device-side assert
# match 6:  ran$
# match: ^positions aten::embedding: index 512 is out of range, there are 512
table, scores = nn.Embedding(512, 8).cuda(), cuda.randn(6, 10, requires_grad=True)
images = cuda.randn(2, 3, 4, 4)
unknown = nn.Linear(512, 2000, device="cuda")(cuda.empty(4000, 512)).argmax(1)
zeros = cuda.zeros(6, 10)

def on(*numbers):
    return torch.tensor(numbers).cuda()

tries = {
    "positions": lambda: table(cuda.arange(514)),
    "negative": lambda: table(on(3, -1)),
    "label": lambda: F.cross_entropy(scores, on(0, 10, -100, 3, 4, 5)),
    "pixels": lambda: F.cross_entropy(images, cuda.full((2, 4, 4), 3)),
    "gathered": lambda: scores.gather(1, on(10)[None]),
    "selected": lambda: scores.index_select(0, on(5, 6)),
    "listed": lambda: images[:, on(0, 3)],
    "put": lambda: zeros.index_put_((on(0), on(-11)), scores[0, 0].detach()),
    "scattered": lambda: zeros.scatter_(1, on(12)[None], 1.0),
    "all_positions": lambda: table(cuda.arange(512)).sum().backward(),
    "ignored": lambda: F.cross_entropy(scores, on(0, 9, -100, 3, 4, 5)),
    "ignored_pixels": lambda: F.cross_entropy(images, cuda.full((2, 4, 4), 255), ignore_index=255),
    "unknown": lambda: table(unknown),
    "from_the_end": lambda: images[on(-2), :, on(-4)],
    "after_a_mask": lambda: images[cuda.ones(2, 3, dtype=torch.bool), on(3)],
}
for name, f in tries.items():
    try:
        f()
        print(name, "ran")
    except IndexError as e:
        print(name, str(e).splitlines()[0])
