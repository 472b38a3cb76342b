"""Without --gpus, spawned processes find a card each; a program that asks for more gets a hint at the option."""
from support.small import cuda, sys, torch

# run: record -- 3 0
# match 3: ^process . sees 3$
# match 2: ^first sees 1$
# never: not there
# fails: record -- 2 3
# match: the program chose card 3, which is not there; --gpus 4 pretends it
# fails: record --gpus 1 -- 2 0
# match: card 1, which is not there; --gpus 2 pretends it

def work(rank):
    torch.cuda.set_device(rank)
    cuda.ones(1000)
    print("process", rank, "sees", torch.cuda.device_count(), flush=True)

if __name__ == "__main__":
    print("first sees", torch.cuda.device_count())
    torch.multiprocessing.spawn(work, nprocs=int(sys.argv[1]))
    print("first sees", torch.cuda.device_count())
    torch.ones(1000, device="cuda:" + sys.argv[2])
