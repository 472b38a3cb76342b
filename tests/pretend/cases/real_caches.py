"""Empty kernels of the pretended card do not get into the caches of a real one."""
from support.small import cuda, torch

# python:
#   os.mkdir("home"), os.mkdir("real")
#   real = os.path.abspath("real")
#   run("record", HOME=os.path.abspath("home"), PYTORCH_KERNEL_CACHE_PATH=real, CUPY_CACHE_DIR=real)
#   left = [files for home in ("home", "real") for _, _, files in os.walk(home) if files]
#   assert not left, left
assert cuda.arange(1, 5).prod().item() == 24
cuda.randn(8, dtype=torch.cfloat).abs()
