# SPDX-License-Identifier: Apache-2.0
"""DTensor's shape propagation for operators on lists: results of the first layout serve all layouts
forked later.

DTensor runs each new operator on fake tensors. For an optimizer that is one per weight, which takes
a quarter of a layout's time. The result depends only on the operator and its arguments: shapes,
strides and types of whole tensors, and numbers. So it is the same in every layout with the same
weights. The first layout writes its results when it ends (keep); the process of cufrag_fork_server.py
reads them (use).

A result is kept as bytes under a hash, without objects for Python's garbage collector to count. It
is not kept if computing it took memory of the card, as the first fake tensor of a card does.
"""
import functools
import hashlib
import os
import pickle
import sys

MODULE = "torch.distributed.tensor._sharding_prop"  # since PyTorch 2.5
OPERATORS = ("aten::_foreach_", "aten::_fused_")
PLAIN = {int, float, complex, bool, str, type(None)}
KEPT = {"path": None, "answers": {}}


class Unknown(Exception):
    pass


def plain(torch, given):
    """The arguments as values whose repr is the same in all processes."""
    kind = type(given)
    if kind in PLAIN or kind in (torch.dtype, torch.device, torch.layout, torch.memory_format):
        return given
    if kind in (list, tuple, torch.Size):
        return kind.__name__, [plain(torch, g) for g in given]
    if kind.__name__ == "DTensorSpec" and given.tensor_meta is not None:
        return given.mesh.device_type, whole(given.tensor_meta)
    raise Unknown


@functools.lru_cache(None)
def whole(tensor_meta):
    shape, stride, dtype = tensor_meta
    if all(type(n) is int for n in (*shape, *stride)):  # no symbolic sizes
        return tuple(shape), tuple(stride), dtype
    raise Unknown


def question(torch, schema):
    """A hash; None: the result may depend on more."""
    core = torch._C
    try:
        if not schema.op._schema.name.startswith(OPERATORS) or core._len_torch_dispatch_stack() or core._len_torch_function_stack() or torch._guards.detect_fake_mode():
            return None
        asked = (str(schema.op), torch.get_default_dtype(), plain(torch, schema.args_schema),
                 [(k, plain(torch, v)) for k, v in schema.kwargs_schema.items()])
    except (Unknown, AttributeError, TypeError):  # symbolic sizes cannot be hashed
        return None
    return hashlib.sha256(repr(asked).encode()).digest()


def allocations(torch):
    return torch.cuda.memory_stats().get("allocation.all.allocated") if torch.cuda.is_initialized() else 0


def watch(module, answers, keep):
    """Returns known results, and keeps new ones."""
    torch, propagator = sys.modules["torch"], getattr(module, "ShardingPropagator", None)
    original = getattr(propagator, "_propagate_tensor_meta_non_cached", None)
    if not original or not hasattr(torch, "_guards"):
        return

    def answer(self, schema):
        asked = question(torch, schema)
        if asked in answers:
            return pickle.loads(answers[asked])
        before = allocations(torch) if keep and asked else None
        found = original(self, schema)
        if before is not None and before == allocations(torch):
            answers[asked] = pickle.dumps(found)
        return found
    propagator._propagate_tensor_meta_non_cached = answer


def keep(path):
    """In the first layout."""
    import cufrag_card
    KEPT["path"] = path
    cufrag_card.After(MODULE, lambda module: watch(module, KEPT["answers"], True), "what saves DTensor time")


def write():
    """At the end of that layout or its scout (cufrag_recorder.py)."""
    if KEPT["answers"]:
        path = KEPT["path"]
        with open("%s.%d" % (path, os.getpid()), "wb") as f:
            pickle.dump(KEPT["answers"], f)
        os.replace("%s.%d" % (path, os.getpid()), path)


def use(path):
    """In a forked process, which has loaded its modules."""
    if MODULE in sys.modules and os.path.exists(path):
        with open(path, "rb") as f:
            watch(sys.modules[MODULE], pickle.load(f), False)
