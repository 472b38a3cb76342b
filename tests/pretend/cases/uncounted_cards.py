"""Without --gpus, spawned processes find a card each; who asks for more learns the option."""
from support.small import cuda, sys, torch

# run: record -- 3 0
# match 3: ^process . sees 3$
# match 2: ^first sees 1$
# never: not there
# fails: record -- 2 3
# match: the program chose card 3, which is not there; --gpus 4 pretends it
# fails: record --gpus 1 -- 2 0
# match: card 1, which is not there; --gpus 2 pretends it
# Lightning counts by itself; of it, only what cufrag looks at
# python:
#   for module in "lightning", "lightning/fabric", "lightning/fabric/utilities":
#       write(module + "/__init__.py", "")
#   write("lightning/fabric/utilities/device_parser.py", "def _sanitize_gpu_ids(gpus, **_):\n"
#         "    raise ValueError('You requested gpu: %s' % gpus)\n")
# fails: record -- lightning
# match: card 1, which is not there; --gpus 2 pretends it

def work(rank):
    torch.cuda.set_device(rank)
    cuda.ones(1000)
    print("process", rank, "sees", torch.cuda.device_count(), flush=True)

if __name__ == "__main__":
    if sys.argv[1] == "lightning":
        import lightning.fabric.utilities.device_parser as parser
        cuda.ones(9)
        parser._sanitize_gpu_ids([0, 1], include_cuda=True)
    print("first sees", torch.cuda.device_count())
    torch.multiprocessing.spawn(work, nprocs=int(sys.argv[1]))
    print("first sees", torch.cuda.device_count())
    torch.ones(1000, device="cuda:" + sys.argv[2])
