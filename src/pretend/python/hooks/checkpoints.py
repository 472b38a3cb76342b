# SPDX-License-Identifier: Apache-2.0
"""Distributed checkpoints of a job in which some ranks do not run: replaces their answers about
shards.

Memory of the card is not affected: plans and files are on the host, and tensors are gathered by
collectives as usual.
"""
import os

import torch

from cufrag_hooks import hook

WHY = "checkpoints of ranks that do not run"


@hook("torch.distributed.checkpoint.utils", release="torch", purpose=WHY, when="alone")
def save_alone(card, utils):
    """Each rank plans, writes and reads only its own shards: plans of other ranks would name files
    that do not exist. Objects are still sent, because they pass through the card."""
    kind = utils._DistWrapper
    init, gather, gather_all, scatter, broadcast = (kind.__init__, kind.gather_object, kind.all_gather_object, kind.scatter_object,
                                                    kind.broadcast_object)

    def as_member(send):
        def sent(self, given):
            self.is_coordinator = self.rank == self.coordinator_rank
            try:
                return send(self, given)
            finally:
                self.is_coordinator = True
        return sent

    def alone(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.is_coordinator = True
    kind.__init__ = alone
    kind.gather_object = as_member(lambda self, own: (gather(self, own), [own])[1])
    kind.all_gather_object = as_member(lambda self, own: (gather_all(self, own), [own])[1])
    kind.scatter_object = as_member(lambda self, parts: (scatter(self, parts * self.get_world_size()), parts[0])[1])
    kind.broadcast_object = as_member(lambda self, own: (broadcast(self, own), own)[1])


@hook("torch.distributed.checkpoint.filesystem", release="torch", purpose=WHY, when="alone")
def keep_apart(card, files):
    """Independent ranks must not overwrite each other: all but the first use a subfolder of the
    checkpoint."""
    rank = int(os.environ["RANK"])

    def inside(kind, wanted):
        original = kind.reset

        def reset(self, checkpoint_id=None):
            original(self, checkpoint_id)
            own = os.path.join(self.path, "rank%d" % rank)
            if checkpoint_id and wanted(own):
                self.path = self.fs.init_path(own)
        kind.reset = reset
    if rank and hasattr(files.FileSystemReader, "reset"):
        inside(getattr(files, "_FileSystemWriter", files.FileSystemWriter), lambda own: True)
        inside(files.FileSystemReader, os.path.isdir)  # else all ranks share it


@hook("torch.distributed.fsdp._optim_utils", release="torch>=2.1", purpose=WHY, when="alone")
def know_all_shards(card, states):
    """FSDP asks all ranks which parts of an optimizer's state they have; the ranges are the same on
    every rank."""
    map_keys, gather = states._map_param_key_to_optim_keys, states._allgather_state_info
    info_of = {}  # by id of the wrapped module's state

    def map_param_key_to_optim_keys(optim_state_dict, group, to_param, to_fqns, fqn_to_info, merge_keys=False):
        keys, own = map_keys(optim_state_dict, group, to_param, to_fqns, fqn_to_info, merge_keys)
        info_of.update((id(info.state), info) for info in fqn_to_info.values())
        if merge_keys:  # all with a gradient
            keys = sorted({*keys, *(states._OptimStateKey((fqn,), True) for fqn, info in fqn_to_info.items()
                                    if info.param_requires_grad[info.param_indices[fqn]])})
        return keys, own

    def allgather_state_info(fsdp_state, input_states):
        own = gather(fsdp_state, input_states)[fsdp_state.rank]
        handle, places = fsdp_state._handle, info_of[id(fsdp_state)].param_indices
        part = handle.flat_param._sharded_size.numel()
        like = next((info for info in own.values() if info.tensors), None)

        def of_rank(rank):
            shards = handle._get_shard_metadata(rank * part, (rank + 1) * part - 1)

            def info(fqn):
                shard = shards[places[fqn]]
                if not like or not shard.in_shard:
                    return states.StateInfo({}, {}, {})
                size = torch.Size([shard.numel_in_shard])
                return states.StateInfo({name: states._PosDimTensorInfo(size, state.dtype) for name, state in like.tensors.items()},
                                        dict(like.scalar_tensors), dict(like.non_tensors))
            return {fqn: info(fqn) for fqn in input_states}
        return [own if r == fsdp_state.rank else of_rank(r) for r in range(fsdp_state.world_size)]
    states._map_param_key_to_optim_keys, states._allgather_state_info = map_param_key_to_optim_keys, allgather_state_info
