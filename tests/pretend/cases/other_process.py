"""A tensor on the card for another process."""
import torch.multiprocessing as mp
from support.small import cuda, torch

# case: True False
# run: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:{case} record
# expect: child has (True, 2000.0)
# expect: child reads [0, 1, 2] and writes [5, 6, 7]

def receive(queue, back):
    kept = queue.get()
    back.put((kept.shape == (1000,), kept.sum().item()))
    few = queue.get()
    read = few.tolist()
    few.copy_(torch.tensor([5, 6, 7]))
    torch.cuda.synchronize()
    back.put(read)

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(queue, back))
    child.start()
    kept = cuda.full((1000,), 2.0)
    queue.put(kept)
    print("child has", back.get(timeout=120))
    few = cuda.arange(3)
    queue.put(few)
    print("child reads", back.get(timeout=120), "and writes", few.tolist())
    child.join()
