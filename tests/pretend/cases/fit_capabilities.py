"""Attention of Turing keeps its scores, and so needs more than on Hopper."""
from support.small import cuda, torch

# python:
#   try:
#       run("record --gpu t4")
#   except AssertionError:
#       match("cutlassF: no kernel found to launch")
#       skip("on the card itself, this PyTorch has no attention in bfloat16 for Turing")
#   write("cards.csv", "name,memory\nt4,16G\na100-40,40G\nh100,80G\n")
# run: fit --cards cards.csv --policy pytorch --json fit.json --
# match 3:  (fits|tight)  *yes
# match 1: ^runs
# python:
#   t4, a100, _ = (c["total_bytes"] * (1 - c["headroom_ratio"]) for c in load("fit.json")["gpus"])
#   assert t4 > 1.5 * a100, (t4, a100)
q = cuda.randn(1, 8, 4096, 64, dtype=torch.bfloat16, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
print("runs")
