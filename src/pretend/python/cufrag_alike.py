# SPDX-License-Identifier: Apache-2.0
"""What DTensor computes anew for each weight, though the blocks of a model are alike: kept in the process that computed it.

The functions below depend only on what their keys have, and nothing changes what they return.
"""
import functools

import cufrag_card


def remember(owner, name, key):
    """Has `owner`'s function answered with what it gave for the same key. key: None where it may depend on more."""
    found = vars(owner).get(name) if owner else None
    if not found:
        return
    original, known = getattr(owner, name), {}

    @functools.wraps(original)
    def answer(*args, **kwargs):
        try:
            asked = key(*args, **kwargs)
            given = known.get(asked)
        except Exception:  # other arguments or attributes than expected, or symbols in place of numbers
            asked = given = None
        if given is None:
            given = original(*args, **kwargs), args  # whose numbers are in the key stays, too
            if asked is not None:
                known[asked] = given
        return given[0]
    setattr(owner, name, staticmethod(answer) if isinstance(found, staticmethod) else answer)


def same_meshes(meshes):
    """FSDP2 joins its mesh with that of tensor parallelism for each weight."""
    return tuple(map(id, meshes))


def same_part(placement, *numbers):
    """How much of a dimension a rank has, for which its indices are split as a tensor would be. Without a fourth argument that asks for all offsets."""
    return (placement, numbers) if {type(n) for n in numbers[:3]} == {int} and all(numbers[3:]) else None


def same_element(op, args, followed, *more, **options):
    """An operator on lists asks the same for the tensors of each block."""
    if followed is not args[0] or not op._schema.name.startswith(("aten::_foreach_", "aten::_fused_")):
        return None
    specs = tuple(arg and arg.strategies[0].output_spec for arg in args)
    single = all(arg is None or len(arg.strategies) == 1 for arg in args)
    return (op, specs, tuple(spec and id(spec.mesh) for spec in specs), more, *options.items()) if single else None


def same_copy(spec, tensor_meta):
    """Each result of an operator on lists: laid out as another, with a shape, strides and a type of its own."""
    return id(spec.mesh), spec.placements, getattr(spec, "shard_order", None), getattr(spec, "use_strided_shard_as_shard_order", None), tensor_meta


def same_layout(*asked):
    """Sizes and strides of a mesh, of which each weight asks for how many ranks share it, and each mesh whether ranks are in it twice."""
    return asked


ALIKE = (("_mesh_layout", "_MeshLayout", "__getitem__", same_layout),
         ("_mesh_layout", "_MeshLayout", "check_non_overlap", same_layout),
         ("device_mesh", "DeviceMesh", "_concatenate", same_meshes),
         ("tensor.placement_types", "_StridedShard", "local_shard_size_and_offset", same_part),
         ("tensor._dtensor_spec", "DTensorSpec", "compute_default_shard_order", tuple),
         ("tensor._dtensor_spec", "DTensorSpec", "shallow_copy_with_tensor_meta", same_copy),
         ("tensor._ops._pointwise_ops", None, "common_pointwise_strategy", same_element))


def begin_at_once(api):
    """DTensor.__init__ does nothing but for torch.export. The five calls that find this out for each result of each operator are left out."""
    import torch
    original, compiler = vars(api.DTensor).get("__init__"), torch.compiler
    if not original or not hasattr(compiler, "is_exporting"):
        return

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        if compiler.is_exporting():
            original(self, *args, **kwargs)

    def leave_alone(eval_frame):
        """As torch.compile leaves the original."""
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
