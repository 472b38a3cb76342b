# SPDX-License-Identifier: Apache-2.0
"""Caches what DTensor computes for each weight, although the blocks of a model are identical.

The functions below depend only on their keys, and their results are immutable.
"""
import functools

import cufrag_card


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


def same_meshes(meshes):
    """FSDP2 joins its mesh with the one of tensor parallelism for each weight."""
    return tuple(map(id, meshes))


def same_part(placement, *numbers):
    """A rank's share of a dimension, found by splitting its indices like a tensor. Not cached with
    a fourth argument, which asks for all offsets."""
    return (placement, numbers) if {type(n) for n in numbers[:3]} == {int} and all(numbers[3:]) else None


def same_element(op, args, followed, *more, **options):
    """Operators on lists ask the same for the tensors of each block."""
    if followed is not args[0] or not op._schema.name.startswith(("aten::_foreach_", "aten::_fused_")):
        return None
    specs = tuple(arg and arg.strategies[0].output_spec for arg in args)
    single = all(arg is None or len(arg.strategies) == 1 for arg in args)
    return (op, specs, tuple(spec and id(spec.mesh) for spec in specs), more, *options.items()) if single else None


def same_copy(spec, tensor_meta):
    """Each result of an operator on lists: another's layout with its own shape, strides and
    type."""
    return id(spec.mesh), spec.placements, getattr(spec, "shard_order", None), getattr(spec, "use_strided_shard_as_shard_order", None), tensor_meta


def same_layout(*asked):
    """Sizes and strides of a mesh: each weight asks how many ranks share it, each mesh for
    duplicates."""
    return asked


ALIKE = (("_mesh_layout", "_MeshLayout", "__getitem__", same_layout),
         ("_mesh_layout", "_MeshLayout", "check_non_overlap", same_layout),
         ("device_mesh", "DeviceMesh", "_concatenate", same_meshes),
         ("tensor.placement_types", "_StridedShard", "local_shard_size_and_offset", same_part),
         ("tensor._dtensor_spec", "DTensorSpec", "compute_default_shard_order", tuple),
         ("tensor._dtensor_spec", "DTensorSpec", "shallow_copy_with_tensor_meta", same_copy),
         ("tensor._ops._pointwise_ops", None, "common_pointwise_strategy", same_element))


def begin_at_once(api):
    """Skips DTensor.__init__, which only matters to torch.export but takes five calls per result to
    find that out."""
    import torch
    original, compiler = vars(api.DTensor).get("__init__"), torch.compiler
    if not original or not hasattr(compiler, "is_exporting"):
        return

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        if compiler.is_exporting():
            original(self, *args, **kwargs)

    def leave_alone(eval_frame):
        """torch.compile does not trace the original, either."""
        if hasattr(eval_frame, "skip_code"):
            eval_frame.skip_code(__init__.__code__)
        else:
            api.DTensor.__init__ = original
    api.DTensor.__init__ = __init__
    cufrag_card.After("torch._dynamo.eval_frame", leave_alone, "what saves DTensor time")


def watch():
    cufrag_card.After("torch.distributed.tensor._api", begin_at_once, "what saves DTensor time")
    for module, owner, name, key in ALIKE:
        def then(loaded, owner=owner, name=name, key=key):
            remember(getattr(loaded, owner, None) if owner else loaded, name, key)
        cufrag_card.After("torch.distributed." + module, then, "what saves DTensor time")
