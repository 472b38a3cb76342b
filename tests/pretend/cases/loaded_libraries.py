"""Libraries of CUDA are the pretended ones wherever they lie, as Transformer Engine loads them."""
import ctypes
from support.small import cuda, os, torch

# run: record
# expect: cudnn True
# expect: other no library
cuda.ones(1)
major, part = (9, "graph") if torch.backends.cudnn.version() >= 90000 else (8, "ops_infer")
for name in "libcudnn.so.%d.1.0" % major, "libcudnn_%s.so.%d" % (part, major), "libother.so.9":
    with open(name, "w") as f:
        f.write("not a library")
os.symlink("libcudnn.so.%d.1.0" % major, "libcudnn.so")
ctypes.CDLL("./libcudnn_%s.so.%d" % (part, major))
print("cudnn", ctypes.CDLL(os.path.abspath("libcudnn.so")).cudnnGetVersion() == torch.backends.cudnn.version())
try:
    ctypes.CDLL("./libother.so.9")
except OSError:
    print("other no library")
