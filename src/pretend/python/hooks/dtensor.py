# SPDX-License-Identifier: Apache-2.0
"""Caches what DTensor computes for each weight, although the blocks of a model are identical.

The functions below depend only on their keys, and their results are immutable.
"""
import functools

import torch

from cufrag_hooks import after, hook

SAVES = "what saves DTensor time"


def remember(owner, name, key):
    """Memoizes `owner`'s function. key: None if the result may depend on more."""
    found = vars(owner).get(name) if owner else None
    if not found:
        return
    original, known = getattr(owner, name), {}

    @functools.wraps(original)
    def answer(*args, **kwargs):
        try:
            asked = key(*args, **kwargs)
            given = known.get(asked)
        except Exception:  # unexpected arguments or attributes, or symbolic sizes
            asked = given = None
        if given is None:
            given = original(*args, **kwargs), args  # keeps objects alive whose ids are in the key
            if asked is not None:
                known[asked] = given
        return given[0]
    setattr(owner, name, staticmethod(answer) if isinstance(found, staticmethod) else answer)


@hook("torch.distributed._mesh_layout", release="torch>=2.9", purpose=SAVES)
def remember_layouts(card, module):
    """Sizes and strides of a mesh: each weight asks how many ranks share it, each mesh for
    duplicates."""
    for name in "__getitem__", "check_non_overlap":
        remember(module._MeshLayout, name, lambda *asked: asked)


@hook("torch.distributed.device_mesh", release="torch>=2.2", purpose=SAVES)
def remember_meshes(card, module):
    """FSDP2 joins its mesh with the one of tensor parallelism for each weight."""
    remember(getattr(module, "DeviceMesh", None), "_concatenate", lambda meshes: tuple(map(id, meshes)))


@hook("torch.distributed.tensor.placement_types", release="torch>=2.5", purpose=SAVES)
def remember_parts(card, module):
    """A rank's share of a dimension, found by splitting its indices like a tensor. Not cached with
    a fourth argument, which asks for all offsets."""
    def same(placement, *numbers):
        plain = {type(n) for n in numbers[:3]} == {int} and all(numbers[3:])
        return (placement, numbers) if plain else None
    remember(getattr(module, "_StridedShard", None), "local_shard_size_and_offset", same)


@hook("torch.distributed.tensor._dtensor_spec", release="torch>=2.5", purpose=SAVES)
def remember_specs(card, module):
    def same_copy(spec, tensor_meta):
        """Each result of an operator on lists: another's layout with its own shape, strides and
        type."""
        orders = [getattr(spec, name, None) for name in ("shard_order", "use_strided_shard_as_shard_order")]
        return id(spec.mesh), spec.placements, *orders, tensor_meta
    remember(module.DTensorSpec, "compute_default_shard_order", tuple)
    remember(module.DTensorSpec, "shallow_copy_with_tensor_meta", same_copy)


@hook("torch.distributed.tensor._ops._pointwise_ops", release="torch>=2.5", purpose=SAVES)
def remember_strategies(card, module):
    """Operators on lists ask the same for the tensors of each block."""
    def same(op, args, followed, *more, **options):
        if followed is not args[0] or not op._schema.name.startswith(("aten::_foreach_", "aten::_fused_")):
            return None
        specs = tuple(arg and arg.strategies[0].output_spec for arg in args)
        single = all(arg is None or len(arg.strategies) == 1 for arg in args)
        meshes = tuple(spec and id(spec.mesh) for spec in specs)
        return (op, specs, meshes, more, *options.items()) if single else None
    remember(module, "common_pointwise_strategy", same)


@hook("torch.distributed.tensor._api", release="torch>=2.5", purpose=SAVES)
def begin_at_once(card, api):
    """Skips DTensor.__init__, which only matters to torch.export but takes five calls per result to
    find that out."""
    original = vars(api.DTensor).get("__init__")
    if not original or not hasattr(torch.compiler, "is_exporting"):
        return

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        if torch.compiler.is_exporting():
            original(self, *args, **kwargs)

    def leave_alone(eval_frame):
        """torch.compile does not trace the original, either."""
        if hasattr(eval_frame, "skip_code"):
            eval_frame.skip_code(__init__.__code__)
        else:
            api.DTensor.__init__ = original
    api.DTensor.__init__ = __init__
    after("torch._dynamo.eval_frame", leave_alone)
