# SPDX-License-Identifier: Apache-2.0
"""Saves a model in the ways of training programs, over files of an earlier run, and reads it back: held_writes.py [prepare]."""
import importlib.util
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
    return len(os.listdir("events")) > (0 if sys.argv[1:] else 1)


WAYS = [torch_save, distributed, of_a_rank, safetensors, arrays, h5py, tensorboard]

if __name__ == "__main__":
    state = {k: v.detach() for k, v in torch.nn.Linear(256, 256).cuda().state_dict().items()}
    for way in WAYS if WORLD == 1 else [of_a_rank]:
        if way.__name__ in ("safetensors", "h5py", "tensorboard") and not importlib.util.find_spec(way.__name__):
            continue
        assert way(state), way.__name__
        print("wrote", way.__name__, flush=True)
