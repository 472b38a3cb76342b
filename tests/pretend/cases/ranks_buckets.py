"""DistributedDataParallel's first buckets go before new ones come, not so since PyTorch 2.11."""
from support.ranks import begin, card, end, expect, torch

# python:
#   run("record --ranks roles --world 4")
#   match("rank 0 stands for ranks 0-3; the same ran: ")
#   never("others| is .*, not ")
#   roles = [p[0] for p in peaks()]
#   run("record --ranks 0,1")
#   never(" is .*, not ")
#   match("the peak may be up to .* MiB higher", 1)
#   assert [p[0] for p in peaks()] == roles[:1] * 2, (roles, peaks())
begin()
# two H200s, CUDA 13.0, PyTorch 2.11: 36 of 40 times the old bucket was there, else 2 or 0
wanted = 4 if [int(n) for n in torch.__version__.split(".")[:2]] >= [2, 11] else 3
kept = []
for n in range(6):
    before = torch.cuda.memory_allocated()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2048, 2048, bias=False, device=card))
    kept.append(model)
    x = torch.zeros(1, 2048, device=card)
    model(x).sum().backward()
    loss = model(x).sum()
    if n:  # with the first come the workspaces of libraries
        expect("weight, gradient and bucket %d" % n, (torch.cuda.memory_allocated() - before) >> 24, wanted)
    loss.backward()
end()
