"""Libraries hold as much memory of the card as on an H100 (results/layout/beside.csv); it is
derived for other cards, and none where the context is given."""
from support.small import cuda, torch

# run: record --gpu h100
# check: re.findall(r"used (\d+)", log) == ["552402944", "648871936", "718077952", "791478272"]
# run: record --gpu l4
# check: re.findall(r"used (\d+)", log) == ["209715200", "241172480", "251658240", "251658240"]
# run: record --gpu h100 --context 512M
# match 4: ^used 536870912$

def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    print("used", total - free - torch.cuda.memory_reserved())

used()
a = cuda.randn(256, 256)
used()
(a @ a).sum()
used()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    a.add_(1)
used()
