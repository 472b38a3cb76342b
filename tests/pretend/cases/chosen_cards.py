"""The program sets CUDA_VISIBLE_DEVICES itself and forks: chosen_cards.py LIST."""
from support.small import cuda, os, sys, torch

# python:
#   for cards, seen in ("1,0", 2), ("1", 1), ("1,7", 1):
#       run("CUDA_VISIBLE_DEVICES=0 PYTORCH_NVML_BASED_CUDA_CHECK=1 record --gpus 2 -- " + cards)
#       expect("seen %d" % seen)
#       expect("child 0")
#       match("^has cuda:0")
#       assert any(d["device"] == 1 for d in info()["devices"]), info()
os.environ.update(CUDA_VISIBLE_DEVICES=sys.argv[1])
print("seen", torch.cuda.device_count())
child = os.fork()
if not child:
    cuda.ones(1000)
    os._exit(0)
print("child", os.waitpid(child, 0)[1])
print("has", cuda.ones(10).device, torch._C._cuda_getDeviceCount())
