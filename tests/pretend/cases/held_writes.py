# SPDX-License-Identifier: Apache-2.0
"""Saves a model in the ways of training programs, over files of an earlier run, and reads it back.

The files of the earlier run keep their bytes, and the program reads what it wrote.
"""
# case: safetensors
# needs: package safetensors
# case: h5py
# needs: package h5py
# case: tensorboard
# needs: package tensorboard
# case: plain safetensors h5py tensorboard
# python:
#   from hashlib import sha256
#   def tree():
#       files = (os.path.join(f, n) for f, _, names in os.walk(".") for n in names)
#       return {n: sha256(open(n, "rb").read()).hexdigest() for n in files if not n.endswith((".cft", "log", "err"))}
#   run("record --keep-writes -- {case}".replace("{case}", case))
#   before = tree()
#   assert any(name.startswith("./latest") or name.startswith("./model") or "loss" in name or "events" in name for name in before), before
#   for line in "record --writes-max 1G -- ", "fit --writes-max 1G -- ", "record --writes-max 1G --ranks 0,1 -- ":
#       assert re.search("that the program wrote (was|were) held back", run(line + case)) and "wrote " + case in log, log
#       assert tree() == before, line
import os
import sys

import numpy
import torch

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def same(state, other):
    return state.keys() == other.keys() and all(torch.equal(state[k].cpu(), other[k].cpu()) for k in state)


def torch_save(state):
    torch.save(state, "best.pt")
    with open("stream.pt", "wb") as f:
        torch.save(state, f)
    return same(torch.load("best.pt"), state) and same(torch.load("stream.pt"), state)


def distributed(state):
    import torch.distributed.checkpoint as checkpoint
    checkpoint.save(state, checkpoint_id="dcp")
    found = {k: torch.zeros_like(v) for k, v in state.items()}
    checkpoint.load(found, checkpoint_id="dcp")
    return same(found, state)


def of_a_rank(state):  # as DeepSpeed lays them out
    os.makedirs("global_step1", exist_ok=True)
    name = "global_step1/mp_rank_%02d_model_states.pt" % RANK
    torch.save(state, name)
    with open("latest", "w") as f:
        f.write("global_step1")
    return same(torch.load(name), state) and open("latest").read() == "global_step1"


def safetensors(state):
    from safetensors.torch import load_file, save_file
    save_file(state, "model.safetensors")
    return same(load_file("model.safetensors"), state)


def arrays(state):
    numpy.save("loss.npy", numpy.arange(4))
    m = numpy.memmap("loss.bin", dtype="int64", mode="r+" if os.path.exists("loss.bin") else "w+", shape=(4,))
    m[:] = 7
    m.flush()
    return numpy.load("loss.npy")[3] == 3 and numpy.fromfile("loss.bin", dtype="int64").tolist() == [7] * 4


def h5py(state):
    import h5py as library
    with library.File("loss.h5", "a") as f:
        f.require_dataset("loss", (4,), "f4")[:] = 2
    with library.File("loss.h5") as f:
        return f["loss"][3] == 2


def tensorboard(state):
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter("events") as w:
        w.add_scalar("loss", 1.0, 1)
    return len(os.listdir("events")) > 0


def plain(state):
    return torch_save(state) and distributed(state) and of_a_rank(state) and arrays(state)


if __name__ == "__main__":
    state = {k: v.detach() for k, v in torch.nn.Linear(256, 256).cuda().state_dict().items()}
    name = sys.argv[1]
    assert (globals()[name] if WORLD == 1 else of_a_rank)(state), name
    print("wrote", name, flush=True)
