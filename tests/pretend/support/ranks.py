# SPDX-License-Identifier: Apache-2.0
"""For the ranks of a job: who this one is, and its group of all, which begins with the import."""
import inspect
import os

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))

def expect(what, got, wanted):
    if got != wanted:
        print("rank %d: %s is %s, not %s" % (rank, what, got, wanted), flush=True)

def full(value, count=2, kind=torch.int64):
    return torch.full((count,), value, dtype=kind, device=card)

def begin(kind="nccl", takes_card=True):
    torch.cuda.set_device(card)
    takes_card &= "device_id" in inspect.signature(dist.init_process_group).parameters
    dist.init_process_group(kind, **({"device_id": card} if takes_card else {}))

def end():
    print("rank %d done" % rank, flush=True)
    dist.destroy_process_group()
