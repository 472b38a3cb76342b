# SPDX-License-Identifier: Apache-2.0
"""One process plays one rank of many alone: torch.distributed connects at once.

The process group is PyTorch's own, over the pretended NCCL. Only the store, by which ranks find
each other, is replaced: it answers for missing ranks.
"""
import copy
import ctypes
import datetime
import importlib
import inspect
import os
import pickle
import sys
import time
import types

from cufrag_recorder import attach, tell

ANSWER = b"\7" * 128  # for keys that other ranks would set: NCCL ids and flags


def request_of_all(data, key):
    """Symmetric memory: ranks exchange requests (NAME/NUMBER/RANK), then their memory. All other
    ranks are this process, each with a card of its own, so their memory is this rank's."""
    stem, _, rank = key.rpartition("/")
    own = next(value for name, value in data.items() if name.rpartition("/")[0] == stem)
    return own if len(own) < 8 else (1000 + int(rank)).to_bytes(4, sys.byteorder) + own[4:]


def make_store(dist, players):
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


def replace(original, new):
    """In every module, because device_mesh and others import the functions by name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(original.__name__) is original:
            setattr(module, original.__name__, new)


MISSING = object()
UNREADABLE = EOFError, ValueError, pickle.UnpicklingError


def tolerate_objects(c10d):
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


def pretend_gloo(c10d):
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
                return original(sys.modules["torch.distributed"].HashStore(), 0, 1, *args, **kwargs)
            return fake._create_internal(rank, size) if hasattr(fake, "_create_internal") else fake(rank, size)
    c10d.ProcessGroupGloo = Gloo
    if not fake:  # PyTorch 2.1, or a later release without it
        return
    fake.options = types.SimpleNamespace()
    for name in ("_set_default_timeout", "_set_sequence_number_for_group"):
        setattr(fake, name, lambda group, *args: None)


def average_over_gloo(torch):
    """DistributedDataParallel asks a gloo group for its sockets, to log them, and waits for
    averaged gradients. The replacement has neither: nothing is logged, and gradients stay as they
    are."""
    ddp, dist = torch.nn.parallel.DistributedDataParallel, torch.distributed
    logger, hook = dist.Logger, dist._register_comm_hook
    original, log = ddp._ddp_init_helper, logger.set_construction_data_and_log

    def stay(state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def init_helper(self, *args, **kwargs):
        alone = self.process_group.name() == "gloo"
        if alone:
            logger.set_construction_data_and_log = lambda *args: None
        try:
            original(self, *args, **kwargs)
        finally:
            logger.set_construction_data_and_log = log
        if alone:
            hook(self.reducer, None, stay)
    ddp._ddp_init_helper = init_helper


def make_parts_alone(c10d):
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


FIRST_STEP_NS = 80000000  # 50 to 110 ms measured (results/nogpu/ranks.md)


def settle_buckets(torch):
    """DistributedDataParallel rebuilds its buckets before the second forward pass. Whether the old
    ones are freed by then depends on the modelled time since they were sent: NCCL's watchdog holds
    them until it polls (stream.c)."""
    ddp, began = torch.nn.parallel.DistributedDataParallel, set()
    original, hooks = ddp._pre_forward, []
    core = ctypes.CDLL(os.path.join(os.environ["CUFRAG_NOGPU_HOME"], "libcufrag_nogpu.so"))
    optimizer = importlib.import_module("torch.optim.optimizer")

    def first_step(*_):
        if torch._C._current_graph_task_id() < 0:  # else gradients are not sent yet
            core.frag_nogpu_host_takes(ctypes.c_uint64(FIRST_STEP_NS))
        hooks[0].remove()

    def pre_forward(self, *args, **kwargs):
        fixed = getattr(self, "_use_python_reducer", False) or getattr(self, "_has_rebuilt_buckets", False) or (
            getattr(self, "find_unused_parameters", False) and not getattr(self, "static_graph", False))
        if not fixed and torch.is_grad_enabled() and torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
            if not hooks:
                hooks.append(optimizer.register_optimizer_step_pre_hook(first_step))
            if id(self) in began:
                time.sleep(0.4)  # three polls of the watchdog
            if self.require_backward_grad_sync:  # accumulating gradients sends nothing
                began.add(id(self))
            gradients = sum(p.numel() * p.element_size() for p in self.module.parameters() if p.requires_grad)
            if gradients >= 2**20:
                tell("DistributedDataParallel replaces its first buckets before the second step; on a card the old ones are sometimes still "
                     "there, so the peak may be up to %.0f MiB higher (docs/pretend.md)" % (gradients / 2**20), "note")
        return original(self, *args, **kwargs)
    ddp._pre_forward = pre_forward


def keep_attempts_apart(dist, attempt):
    """torchrun keeps its store when it restarts the ranks. A rank faster than rank 0 would find the
    group's name of the first attempt there, and join ranks that have ended. Up to 2.5, PyTorch
    avoids that itself."""
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    create = rendezvous._create_c10d_store
    rendezvous._create_c10d_store = lambda *args, **kwargs: dist.PrefixStore("attempt %s" % attempt, create(*args, **kwargs))


def play(torch):
    try:
        import torch.distributed as dist
        if not dist.is_available():
            return
        from torch.distributed import distributed_c10d as c10d
    except ImportError:
        return
    roles, scout = os.environ.get("CUFRAG_NOGPU_ROLES"), os.environ.get("CUFRAG_NOGPU_SCOUT")
    if os.environ.get("CUFRAG_NOGPU_TALK") and not roles:
        if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
            keep_attempts_apart(dist, os.environ["TORCHELASTIC_RESTART_COUNT"])
        return  # all ranks run and exchange messages (talk.h)
    players = None
    if roles or scout:
        import cufrag_roles
        world = int(os.environ["WORLD_SIZE"])
        players = cufrag_roles.Players(torch, c10d, roles, world) if roles else None
        if scout:
            attach("roles of ranks", cufrag_roles.Scout, torch, c10d, scout, world) or cufrag_roles.end_scout(1)
    attach("objects of ranks that do not run", tolerate_objects, c10d)
    import cufrag_checkpoints
    cufrag_checkpoints.watch(torch)
    attach("groups of Gloo with ranks that do not run", pretend_gloo, c10d)
    attach("averages of gradients over Gloo", average_over_gloo, torch)
    attach("groups that are split off", make_parts_alone, c10d)
    original = dist.init_process_group
    kept = []  # C++ keeps no reference to the Python object

    signature = inspect.signature(original)

    def init_process_group(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        kept.append(make_store(dist, players))
        given["store"] = kept[-1]
        given.pop("init_method", None)
        given.pop("device_id", None)  # else groups are made by splits
        for name, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")):
            if given.get(name, -1) in (-1, None):
                given[name] = int(os.environ[variable])
        return original(**given)
    replace(original, init_process_group)
