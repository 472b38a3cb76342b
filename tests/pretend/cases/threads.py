"""Computing takes one thread, so that those of a library do not wait for each other."""
from support.small import cuda, os, torch

# run: OMP_NUM_THREADS=2 record
# expect: threads 1 2
large = torch.nn.Parameter(cuda.randn(4096, 4096))
(large @ large).clamp_min(0).norm().backward()
names = [open("/proc/self/task/%s/comm" % task).read() for task in os.listdir("/proc/self/task")]
print("threads", sum(name.startswith("pt_autograd_0") for name in names), torch.get_num_threads())
