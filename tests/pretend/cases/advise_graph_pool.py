"""Pools of graphs."""
from support.small import cuda, nn, sys, torch

# python: by_hand("graph_pool")
# match: graph_pool  *advise_graph_pool.py:<1>\b
m, graphs = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024)).cuda(), []
with torch.no_grad():
    for n in (4096, 2048, 1024):
        x = cuda.randn(n, 1024)
        m(x)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, pool=graphs[0][0].pool() if graphs and "graph_pool" in sys.argv else None):  # <1>
            y = m(x)
        graphs.append((g, x, y))
