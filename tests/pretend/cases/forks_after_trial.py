"""All is recorded by a new Python, if a fork of a known layout does something else."""
from support.small import os, sys

# python:
#   write("site-packages/early.py", "import os; loaded_by = os.getpid()")
#   layout("--world 2 --jobs 2 --vary {mb}=5,6,7,8,9 -- {mb}")
#   match("started anew")
#   # as many MiB as it was given: a weight of 4 MiB for each
#   every = [line.split(",") for line in lines("rows.csv")]
#   ran = [(row[2].split("mb=")[1], int(row[5]) // 4194304) for row in every if row[4] in ("recorded", "card")]
#   assert len(ran) > 1 and all(int(given) == found for given, found in ran), ran
import early
import torch

torch.distributed.init_process_group("nccl")
mib = int(sys.argv[1]) * (1 if early.loaded_by == os.getpid() else 2)
layer = torch.nn.Linear(1024, mib << 10).cuda()
torch.optim.SGD(layer.parameters(), lr=0.1).step()
