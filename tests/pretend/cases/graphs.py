"""Captures use private pools, and one that fails says why: the last one, because PyTorch before
2.15 draws no random numbers on a card from then on."""
from support.small import failed_capture, graph

# case: recorded
# run: record
# match: ^refused CUDA error: .*capture
# verify

# case: live
# python:
#   for policy in "pytorch", "vmm", "tlsf":
#       run("run --record live.cft --policy " + policy)
#       match("torch.Size")
#       run("replay live.cft --policy " + policy)

# an adaptor that writes when it ends
# case: live_log
# run: run --gpus 2 --policy log:file=live.csv/bfc
# run: info live.csv
# match: format  *rmm
graph()
failed_capture()
