"""Whatever a policy may meet in a running program."""
import gc
import threading
from support.small import cuda, failed_capture, graph, nn, os, torch
import cufrag.torch

# python:
#   for policy in "vmm", "tlsf", "pytorch:expandable_segments:True":
#       run("run --gpus 2 --capacity 2G --context 512M --record live.cft --policy " + policy)
#       expect("policy " + policy)
#       expect("fastest 14400")
#       expect("child 0")
#       match("torch.Size", 2)
#       match("^refused CUDA error: .*capture")
#       match("refused: .*Tried to allocate 3 GiB.*No policy can serve this")
#       run("info live.cft", status=6)  # what was refused was the largest request
#       match("800 frees that wait for a stream")
print("policy", cufrag.torch.policy())
try:
    cuda.empty(3 << 30, dtype=torch.uint8)
except torch.cuda.OutOfMemoryError as error:
    print("refused:", error)

def work():
    with torch.cuda.stream(torch.cuda.Stream()):
        for i in range(200):
            x = cuda.empty(1000 * (i % 37 + 1))
            x.record_stream(torch.cuda.default_stream())
            del x

threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
moved = torch.ones(1000, device="cuda:1").to("cuda:0")
torch.cuda.set_device(1)
del moved
torch.cuda.set_device(0)
with torch.backends.cudnn.flags(benchmark=True):
    print("fastest", nn.Conv2d(3, 8, 3).cuda()(cuda.ones(2, 3, 32, 32)).numel())
kept = cuda.ones(1 << 20)
child = os.fork()
if not child:
    del kept
    gc.collect()
    os._exit(0)
print("child", os.waitpid(child, 0)[1])
for capture in graph, graph, failed_capture:
    capture()
    gc.collect()
    torch.cuda.empty_cache()
