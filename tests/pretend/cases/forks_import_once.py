"""Forked layouts import nothing twice, but for modules that ask for a card: KIND SIZE."""
import importlib
from support.small import cuda, sys

# python:
#   note = 'open("imports", "a").write(__name__ + "\\n")\n'
#   for module, more in ("early", ""), ("late", ""), ("asks", 'import torch; torch.zeros(1, device="cuda")\n'):
#       write("site-packages/%s.py" % module, note + more)
#   # by the first layout (a job's: scout, rank and check) and the process that is forked; asks, too, by
#   # the trial, five layouts and one on each card itself
#   once, job = {"early": 2, "late": 2}, {"early": 4, "late": 4}
#   for kind, options, wanted in ("late", "", once), ("asks", "", {"asks": 10, "early": 2}), ("job", "--world 2", job):
#       layout("--gpu h100,h200 --jobs 1 %s --vary {n}=1,2,3,4,5,6 -- %s {n}" % (options, kind))
#       imports = lines("imports")
#       assert {name: imports.count(name) for name in imports} == wanted, (kind, options, imports)
#       os.remove("imports")
import early  # noqa: F401
import torch

layer = torch.nn.Linear(int(sys.argv[2]) << 8, 1 << 10).cuda()
if sys.argv[1] == "job":
    torch.distributed.init_process_group("nccl")
importlib.import_module("late" if sys.argv[1] == "job" else sys.argv[1])
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(cuda.randn(8, int(sys.argv[2]) << 8)).sum().backward()
optimizer.step()
