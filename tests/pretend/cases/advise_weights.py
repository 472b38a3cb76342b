"""Smaller weights: those of bitsandbytes and torchao where they are installed."""
from support.small import cuda, nn, torch

# run: advise --changes weights_8bit,weights_4bit
# check: re.search("weights_8bit.*" + ("tried" if release("torchao") else "torchao is not installed"), log)
# check: re.search("weights_4bit.*" + ("tried" if release("torchao") or release("bitsandbytes") else "is not installed"), log)
m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
with torch.no_grad():
    m(cuda.randn(64, 1024))
