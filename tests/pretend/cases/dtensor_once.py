"""DTensor computes once what blocks with equal weights ask, however many they are: BLOCKS."""
from torch.distributed import device_mesh
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, placement_types
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._ops import _pointwise_ops
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from support.small import blocks, sys, torch, train

# needs: from torch.distributed.device_mesh import DeviceMesh as m; m._concatenate; \
#   from torch.distributed.tensor.placement_types import _StridedShard as s; s.local_shard_size_and_offset; \
#   from torch.distributed.tensor._ops._pointwise_ops import common_pointwise_strategy
# run: record --gpu h100 --ranks 0 --world 4 -- 2
# run: record --gpu h100 --ranks 0 --world 4 -- 4
# check: len(lines("counts")) == 2 and len(set(lines("counts"))) == 1
counts = [0, 0, 0, 0, 0]

def count(owner, name, i):
    original = getattr(owner, name)

    def counted(*args, **kwargs):
        counts[i] += 1
        return original(*args, **kwargs)
    setattr(owner, name, counted)

count(device_mesh.DeviceMesh, "__init__", 0)
count(placement_types._StridedShard, "_split_tensor", 1)
if hasattr(_pointwise_ops, "generate_redistribute_costs"):  # not in PyTorch 2.15
    count(_pointwise_ops, "generate_redistribute_costs", 2)
if hasattr(device_mesh, "_MeshLayout"):  # since PyTorch 2.10
    count(device_mesh._MeshLayout.__base__, "__getitem__", 3)
counts[4] = DTensor.__init__.__code__.co_filename.rpartition("/")[2]
mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
dp, tp = mesh["dp"], mesh["tp"]
with torch.device("meta"):
    model = torch.nn.Sequential(*blocks(int(sys.argv[1])))
for block in model:
    parallelize_module(block, tp, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(block, mesh=dp)
fully_shard(model, mesh=dp)
model.to_empty(device="cuda")
for p in model.parameters():
    torch.nn.init.normal_(p)
train(model, 64, 256, steps=2, foreach=True)
if hasattr(DTensorSpec, "shallow_copy_with_tensor_meta"):
    counts.append(len({id(half._spec) for half in torch._foreach_mul([block[0].weight for block in model], 0.5)}))
with open("counts", "a") as f:
    f.write("%s\n" % counts)
