# SPDX-License-Identifier: Apache-2.0
"""One process plays one rank of many alone: torch.distributed connects at once.

The process group is PyTorch's own, over the pretended NCCL. Only the store, by which ranks find
each other, is replaced: it answers for missing ranks.
"""
import copy
import datetime
import inspect
import os
import pickle
import sys
import types

import torch.distributed as dist

import cufrag_protocol as protocol
from cufrag_hooks import begin, hook, replace
from cufrag_recorder import attach, tell

C10D = "torch.distributed.distributed_c10d"
ANSWER = b"\7" * 128  # for keys that other ranks would set: NCCL ids and flags


def request_of_all(data, key):
    """Symmetric memory: ranks exchange requests (NAME/NUMBER/RANK), then their memory. All other
    ranks are this process, each with a card of its own, so their memory is this rank's."""
    stem, _, rank = key.rpartition("/")
    own = next(value for name, value in data.items() if name.rpartition("/")[0] == stem)
    return own if len(own) < 8 else (1000 + int(rank)).to_bytes(4, sys.byteorder) + own[4:]


def make_store(players):
    """players: for --ranks roles (cufrag_roles.py), or None."""
    class Everybody(dist.Store):
        def __init__(self):
            super().__init__()
            self.data = {}

        def set(self, key, value):
            self.data[key] = value if isinstance(value, bytes) else str(value).encode()
            if players:
                players.set(key, self.data[key])

        def get(self, key):
            if key in self.data:
                return self.data[key]
            if "CUDASymmetricMemory/" in key:
                return request_of_all(self.data, key)
            return players.get(key) if players else ANSWER

        def add(self, key, count):
            self.data[key] = str(int(self.data.get(key, b"0")) + count).encode()
            return int(self.data[key])

        def check(self, keys):
            return all(key in self.data for key in keys)

        def wait(self, *args):
            pass

        def compare_set(self, key, expected, value):
            self.set(key, value)
            return self.get(key)

        def delete_key(self, key):
            return self.data.pop(key, None) is not None

        def num_keys(self):
            return len(self.data)

        def set_timeout(self, timeout):
            pass

        @property
        def timeout(self):
            return datetime.timedelta(minutes=30)
    return Everybody()


MISSING = object()
UNREADABLE = EOFError, ValueError, pickle.UnpicklingError


@hook(C10D, release="torch", purpose="objects of ranks that do not run", when="alone")
def tolerate_objects(card, c10d):
    """Objects of other ranks never arrive: this rank's value stays in their place, a gather repeats
    this rank's, and a receiver keeps nothing."""
    broadcast, receive, gather = c10d.broadcast_object_list, getattr(c10d, "recv_object_list", None), c10d.gather_object
    to_object = getattr(c10d, "_tensor_to_object", None)

    def tensor_to_object(*args, **kwargs):
        try:
            return to_object(*args, **kwargs)
        except UNREADABLE:
            return MISSING

    def broadcast_object_list(object_list, *args, **kwargs):
        before = list(object_list)
        try:
            broadcast(object_list, *args, **kwargs)
        except UNREADABLE:
            if to_object:
                raise
            object_list[:] = before
        object_list[:] = [b if o is MISSING else o for b, o in zip(before, object_list)]

    def gather_object(obj, object_gather_list=None, *args, **kwargs):
        gather(obj, object_gather_list, *args, **kwargs)
        for place, o in enumerate(object_gather_list or []):
            if o is MISSING:
                object_gather_list[place] = copy.deepcopy(obj)

    def recv_object_list(object_list, *args, **kwargs):
        source = receive(object_list, *args, **kwargs)
        if any(o is MISSING for o in object_list):
            raise RuntimeError("this rank waits for objects, which the pretended ranks cannot send; give PipelineStage its "
                               "input_args and output_args")
        return source
    if to_object:
        c10d._tensor_to_object = tensor_to_object
    replace(broadcast, broadcast_object_list)
    replace(gather, gather_object)
    if receive:
        replace(receive, recv_object_list)


@hook(C10D, release="torch", purpose="groups of Gloo with ranks that do not run", when="alone")
def pretend_gloo(card, c10d):
    """Gloo's ranks connect by sockets, but there are no others: each keeps its own values."""
    original = getattr(c10d, "ProcessGroupGloo", None)
    if not original:
        return
    parts = getattr(sys.modules["torch._C"], "_distributed_c10d", None)
    fake = getattr(c10d, "FakeProcessGroup", None) or getattr(parts, "FakeProcessGroup", None)

    class Either(type(original)):
        def __instancecheck__(cls, group):
            return isinstance(group, fake or original)

    class Gloo(original, metaclass=Either):
        def __new__(cls, store, rank, size, *args, **kwargs):
            if not fake:
                tell("without ranks that do not run in a group of Gloo, in which each is alone: no FakeProcessGroup")
                return original(dist.HashStore(), 0, 1, *args, **kwargs)
            return fake._create_internal(rank, size) if hasattr(fake, "_create_internal") else fake(rank, size)
    c10d.ProcessGroupGloo = Gloo
    if not fake:  # PyTorch 2.1, or a later release without it
        return
    fake.options = types.SimpleNamespace()
    for name in ("_set_default_timeout", "_set_sequence_number_for_group"):
        setattr(fake, name, lambda group, *args: None)


@hook(C10D, release="torch", purpose="groups that are split off", when="alone")
def make_parts_alone(card, c10d):
    """ncclCommSplit learns its members from all ranks; here each split is made as a new group."""
    if hasattr(c10d, "_get_split_source"):
        c10d._get_split_source = lambda *args: None
    original = getattr(c10d, "split_group", None)
    if not original:
        return

    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, **kwargs):
        parent = c10d.get_process_group_ranks(parent_pg or c10d._get_default_group())
        own = c10d.GroupMember.NON_GROUP_MEMBER
        for part in split_ranks:
            group = c10d.new_group([parent[r] for r in part], timeout=timeout, pg_options=pg_options, group_desc=group_desc)
            if c10d.get_rank() in [parent[r] for r in part]:
                own = group
        return own
    replace(original, split_group)


@hook("torch.distributed.rendezvous", release="torch", purpose="attempts of torchrun", when="ranks")
def keep_attempts_apart(card, rendezvous):
    """torchrun keeps its store when it restarts the ranks. A rank faster than rank 0 would find the
    group's name of the first attempt there, and join ranks that have ended. Up to 2.5, PyTorch
    avoids that itself."""
    create = rendezvous._create_c10d_store
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt != "0" and all_run():
        rendezvous._create_c10d_store = lambda *args, **kwargs: dist.PrefixStore(
            "attempt " + attempt, create(*args, **kwargs))


def all_run():
    """Then they exchange messages (talk.h)."""
    return protocol.PRETEND_TALK and not protocol.PRETEND_ROLES


@hook(C10D, release="torch", purpose="ranks that do not run", when="ranks")
def play(card, c10d):
    if all_run():
        return
    import cufrag_roles
    world, players, kept = int(os.environ["WORLD_SIZE"]), None, []
    if protocol.PRETEND_ROLES:
        players = cufrag_roles.Players(card, c10d, protocol.PRETEND_ROLES, world)
    if protocol.PRETEND_SCOUT:
        attach("roles of ranks", cufrag_roles.Scout, c10d, protocol.PRETEND_SCOUT, world) or cufrag_roles.end_scout(1)
    begin(card, "alone")
    original = dist.init_process_group
    signature = inspect.signature(original)

    def init_process_group(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        kept.append(make_store(players))  # C++ keeps no reference to the Python object
        given["store"] = kept[-1]
        given.pop("init_method", None)
        given.pop("device_id", None)  # else groups are made by splits
        for name, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")):
            if given.get(name, -1) in (-1, None):
                given[name] = int(os.environ[variable])
        return original(**given)
    replace(original, init_process_group)
