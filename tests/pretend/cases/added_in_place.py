"""Gradients of compiled code are added in place: cufrag does not own the tensors it looks at."""
import torch._inductor.compile_fx
from support.small import cuda, torch

# needs: import torch._dynamo; torch._C._dynamo.guards._empty_strided_cuda
# run: record
# expect: added 0
make = torch._C._dynamo.guards._empty_strided_cuda

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return ctx.how(), None

x = cuda.randn(64, 64, requires_grad=True)

def requests(how):
    x.grad = None
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    sum(Twice.apply(x, how) for _ in range(4)).sum().backward()
    return torch.cuda.memory_stats()["allocation.all.allocated"] - before

plain = requests(lambda: cuda.empty(64, 64))
print("added", requests(lambda: make((64, 64), (64, 1), torch.float32)) - plain)
