"""Routers are balanced unless told: two of eight experts for each of 512 tokens."""
from support.small import cuda

# all tokens to the same experts: --again says how much of the peak depends on it
# run: record --again
# expect: largest 128 of 512
# expect: largest 512 of 512
# run: info run.cft
# match: with the worst routing: peak live
# match: a router's choice of experts
# run: record --values skewed=1.5
# expect: largest 192 of 512
x = cuda.randn(512, 8192)
chosen = (x @ cuda.randn(8192, 8)).softmax(-1).topk(2).indices
print("largest %d of 512" % chosen.flatten().bincount(minlength=8).max().item())
sum((x[(chosen == e).any(-1)] @ cuda.randn(8192, 8192)).sum() for e in range(8)).item()
