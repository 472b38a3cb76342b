"""Libraries beside cuBLAS and cuDNN. Workspaces of transforms are those of an H200, CUDA 13.0."""
import ctypes
from support.small import cuda, nn, torch

# run: record
# verify

def beside_output(call):
    """Bytes that an operator requests beside what it returns."""
    before = torch.cuda.memory_stats()["requested_bytes.all.allocated"]
    out = call()
    return torch.cuda.memory_stats()["requested_bytes.all.allocated"] - before - out.nbytes

a = cuda.randn(300, 300)
s, linalg = a @ a.T + torch.eye(300, device="cuda"), torch.linalg
for name in "svdvals cholesky inv eigvalsh eigvals qr pinv slogdet".split():
    getattr(linalg, name)(s), getattr(linalg, name)(s[:5, :5].contiguous())
shapes = (1, 64, 302), (1, 16, 1859), (100, 8, 97), (2, 1009, 371)
forward = [beside_output(lambda: torch.fft.rfft2(x)) for x in map(cuda.zeros, shapes)]
half = cuda.zeros(2, 7, 279, dtype=torch.complex64)
back = beside_output(lambda: torch.fft.irfft2(half, s=(7, 557))) - 8 * half.numel()  # its copy
print("transforms", *forward, back)
# expect: transforms 77312 476544 0 5998104 62936
i = cuda.randint(0, 300, (2, 900))
m = torch.sparse_coo_tensor(i, cuda.randn(900), (300, 300))
print("sparse", tuple((m.coalesce().to_sparse_csr() @ a).shape), tuple(torch.sparse.mm(m, m).shape))
# expect: sparse (300, 300) (300, 300)
torch.sparse.sampled_addmm(m.to_sparse_csr(), a, a)
nn.LSTM(64, 64, 2, device="cuda")(cuda.randn(10, 4, 64))[0].sum().backward()
torch.nested.nested_tensor([a[:3], a[:5]]).to_padded_tensor(0.0)
with torch.profiler.profile() as p:
    torch.mm(a, a)
print("profiled", any("aten::mm" in e.key for e in p.key_averages()))
# expect: profiled True
nvml, count, memory = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(), (ctypes.c_ulonglong * 3)()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
nvml.nvmlDeviceGetMemoryInfo(ctypes.c_void_p(1), memory)
total, free = torch.cuda.get_device_properties(0).total_memory, torch.cuda.mem_get_info()[0]
print("nvml", count.value, memory[0] == total, memory[1] == free)
# expect: nvml 1 True True
try:
    torch._cslt_compress(cuda.zeros(64, 64, dtype=torch.half))
except RuntimeError as error:
    print("refused", type(error).__name__)
# expect: refused RuntimeError
