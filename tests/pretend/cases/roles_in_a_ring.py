"""Stages are found although a ring of attention sends first."""
from torch.distributed.device_mesh import init_device_mesh
from support.ranks import begin, dist, rank, torch
from support.small import cuda

# needs: torch>=2.2
# run: record --ranks roles --world 8
# match: rank 0 stands for ranks 0,4
# match: rank 1 stands for ranks 1,5
# match: rank 2 stands for ranks 2,6
# match: rank 3 stands for ranks 3,7
begin(takes_card=False)
mesh = init_device_mesh("cuda", (2, 2, 2), mesh_dim_names=("dp", "pp", "cp"))
dp, pp, cp = (mesh.get_group(name) for name in ("dp", "pp", "cp"))
ring, line = (dist.get_process_group_ranks(group) for group in (cp, pp))
stage = line.index(rank)
net = torch.nn.Linear(1024, 1024 * (1 + stage)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    x, other = cuda.randn(64, 1024), cuda.empty(64, 1024)
    if stage:
        dist.recv(x, line[0], group=pp)
    peer = ring[1 - ring.index(rank)]
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, peer, cp), dist.P2POp(dist.irecv, other, peer, cp)]):
        work.wait()
    y = net(x + other)
    if not stage:
        dist.send(y.detach(), line[1], group=pp)
    y.sum().backward()
    dist.all_reduce(net.weight.grad, group=dp)
    optimizer.step()
    optimizer.zero_grad()
