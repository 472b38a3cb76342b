"""Saving and loading need the same whoever else runs: FSDP2 in shards, FSDP in shards and whole."""
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from support.ranks import begin, card, dist, end, expect, rank, torch, world
from support.small import os, step

# needs: torch>=2.6
# python:
#   found = {}
#   for way in "0,1", "0", "1", "roles":
#       os.mkdir(way)
#       run("record --ranks %s --world 2" % way, FOLDER=way)
#       match("rank . done")
#       never("^rank .* is .*, not ")
#       found[way] = [p[:2] for p in peaks()]
#   zero, one = found["0,1"]
#   # where objects are gathered and scattered, some more for other ranks
#   for (peak, count), wanted in zip(found["0"] + found["1"] + found["roles"], (zero, one, zero)):
#       assert peak == wanted[0] and wanted[1] - 10 <= count <= wanted[1], found
#   assert len(found["0"] + found["1"] + found["roles"]) >= 3
begin()
for whole in (False, True):
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).to(card)
    net = FullyShardedDataParallel(net, use_orig_params=True) if whole else fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())
    step(optimizer, net(torch.randn(64, 256, device=card)).sum())
    for full in (False, True)[:1 + whole]:
        options = StateDictOptions(full_state_dict=full, cpu_offload=full)
        names = ("model", "states")
        state = dict(zip(names, get_state_dict(net, optimizer, options=options)))
        if full:
            expect("states of", len(state["states"].get("state", ())), 6 if rank == 0 else 0)
            continue
        path = os.path.join(os.environ["FOLDER"], "whole" if whole else "shards")
        dcp.save(state, checkpoint_id=path)
        dcp.load(state, checkpoint_id=path)
        set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["states"])
    step(optimizer, net(torch.randn(64, 256, device=card)).sum())
x = [None] * world if rank == 0 else None
dist.gather_object({"rank": rank}, x, 0)
if rank == 0:
    expect("kinds gathered", {type(o) for o in x}, {dict})
end()
