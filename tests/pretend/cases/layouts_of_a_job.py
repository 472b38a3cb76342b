"""layout starts the ranks of torchrun, one for each role, and finds the border of the batch. The
margin has room for NCCL: since PyTorch 2.15, a mesh makes its groups at once, also of one rank."""
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from support.small import os, sys, torch, train

# needs: torch>=2.6
# python: write("cards.csv", "name,memory,price_per_hour\nl4,1300M,0.7\n")
# run: layout --cards cards.csv --gpu l4 --margin 520M --world 1,2 --vary {batch}=1..16 --jobs 1 --check 0 --json layout.json \
#   --- torchrun --nproc-per-node {world} CASE --batch {batch}
# python:
#   a = load("layout.json")
#   ran = [r for r in a["layouts"] if r["basis"] != "assumed"]
#   assert a["fewest"][0]["gpus_count"] == 1 and a["fewest"][0]["confirmed"], a["fewest"]
#   assert len(ran) < 14 and {"fits"} < {r["answer"] for r in ran} <= {"fits", "tight", "does not fit"}
#   for r in ran:
#       assert r["permanent_bytes"] and r["optimizer_bytes"] and r["rank"] == 0 and r["step_us"], r
#       assert abs(r["price_per_step"] / (0.7 * r["gpus_count"] * r["step_us"] / 3.6e9) - 1) < 1e-3
#       assert r["bound_by"] == "fragmentation" or r["bound_by"] == "activations" and r["activation_bytes"] > r["gradient_bytes"], r
#   assert "activations" in {r["bound_by"] for r in ran}, ran
#   assert a["failed_count"] == 0 and a["wrong_count"] == 0
#   one, two = (max(int(r["layout"].split("batch=")[1]) for r in a["layouts"] if r["answer"] == "fits" and r["gpus_count"] == n)
#               for n in (1, 2))
#   assert one <= two, (one, two)
batch = int(sys.argv[sys.argv.index("--batch") + 1])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),))
net = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True, device="cuda") for _ in range(3)])
for layer in net:
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
train(net, batch, 128, 512, steps=5)
