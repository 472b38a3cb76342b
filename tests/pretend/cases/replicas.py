"""DataParallel: one process, two cards, copies of the model by broadcasts."""
from support.small import cuda, nn, step, torch

# run: record --gpus 2
# expect: replicas [True, True]
# run: info run.cft
# match: device 1
# verify
model = nn.DataParallel(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(4):
    step(optimizer, model(cuda.randn(32 + 2 * i, 512)).square().mean())
print("replicas", [torch.cuda.max_memory_allocated(i) > 1 << 20 for i in range(2)])
