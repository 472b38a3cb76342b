"""Libraries of CUDA code with the runtime inside, or beside it under a name of its own, or with
calls that are not supported (801), which are listed."""
import ctypes
import glob
import re
import subprocess
from support.small import cuda, os, torch

# needs: tool cc
# python:
#   name, inside = "libcudart-0a1b2c3d.so.13", "support/inside.c"
#   find = "from importlib.util import find_spec; print(*find_spec('torch').submodule_search_locations)"
#   os.makedirs("site/own.libs"), os.symlink(shell([python, "-c", find]).strip(), "site/torch")
#   cc = "cc -w -shared -fPIC -D"
#   shell("%sRUNTIME -Wl,-soname,%s -o site/own.libs/%s %s" % (cc, name, name, inside))
#   shell("%sUSER -Wl,-rpath,$PWD/site/own.libs -o renamed.so %s site/own.libs/%s" % (cc, inside, name))
#   run("PYTHONPATH=site record")
# match 2: ^inside 1 True True$
# python:
#   if re.search("^beside", log, re.M):
#       expect("beside 801")
#       match("and failed: cudaMallocPitch$")
BESIDE = """
int cublasSrotg_v2(void *, float *, float *, float *, float *);
int cudaMallocPitch(void **, unsigned long *, unsigned long, unsigned long);
int beside(void) {
    float a = 1; void *p; unsigned long pitch;
    return 1000 * cublasSrotg_v2(0, &a, &a, &a, &a) + cudaMallocPitch(&p, &pitch, 100, 100);
}
"""

def build(name, *options):
    subprocess.run(["cc", "-O0", "-w", "-shared", "-fPIC", "-o", name, *options], check=True)
    return ctypes.CDLL(os.path.abspath(name))

cuda.ones(10)
hidden = build("inside.so", "support/inside.c", '-DHIDDEN=__attribute__((visibility("hidden")))')
for inside in hidden, ctypes.CDLL(os.path.abspath("renamed.so")):
    inside.managed.restype = ctypes.c_void_p
    before = torch.cuda.mem_get_info()[0]
    print("inside", inside.count(), inside.managed() > 1 << 40, before - torch.cuda.mem_get_info()[0] >= 3 << 20)
if glob.glob(os.path.join(os.path.dirname(torch.__path__[0]), "nvidia", "*", "lib", "libcublas.so.*")):
    with open("/proc/self/maps") as f:
        stubs = {line.split()[-1] for line in f if re.search(r"/(libcudart|libcublas)\.so\.", line)}
    with open("beside.c", "w") as f:
        f.write(BESIDE)
    print("beside", build("beside.so", "beside.c", *sorted(stubs)).beside())
