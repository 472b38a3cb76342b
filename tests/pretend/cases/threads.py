"""Computing takes one thread, so that those of a library do not wait for each other; with
--values computed all that the program has, although pinning memory sets one for autograd."""
from support.small import cuda, os, sys, torch

# case: one
# run: OMP_NUM_THREADS=2 record -- large
# expect: threads 1 2

# case: computed
# run: OMP_NUM_THREADS=3 record --values computed -- pinned
# expect: threads 3 1

class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        own.append(torch.get_num_threads())
        return g

own = []
if sys.argv[1] == "large":
    large = torch.nn.Parameter(cuda.randn(4096, 4096))
    (large @ large).clamp_min(0).norm().backward()
    own.append(torch.get_num_threads())
else:
    for batch in torch.utils.data.DataLoader(torch.randn(4, 1024, 1024), pin_memory=True, num_workers=1):
        x = batch.cuda().requires_grad_()
        (Asks.apply(x).exp() * 2).sin().sum().backward()
names = [open("/proc/self/task/%s/comm" % task).read() for task in os.listdir("/proc/self/task")]
print("threads", sum(name.startswith("pt_autograd_0") for name in names), *set(own))
