"""Of ranks that make no group, one stands for all; one that fails says so: SIZE [other]."""
from support.small import cuda, os, sys, torch, train

# run: record --ranks roles --world 4 -- 10
# match: made no group of ranks
# match: rank 0 stands for ranks 0-3; the same ran: 3
# run: record --ranks roles --world 4 -- 10 other
# match: rank 0 stands for ranks 0-3; others: 3
# run: record --ranks 0-3 --memory 1G --world 4 -- 10
# check: len(info()["devices"]) == 4
# fails: record --ranks roles --world 4 -- none
# match: ended with status 1 before its first step
layer = torch.nn.Linear(1 << 10, 1 << int(sys.argv[1])).cuda()
train(layer, 8, 1 << 10, steps=2, kind=torch.optim.SGD, lr=0.1)
if os.environ["RANK"] == "3" and len(sys.argv) > 2:
    cuda.ones(3 << 20)
