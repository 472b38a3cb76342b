"""What the program kills writes its recording: kills.py child|tree."""
import contextlib
import ctypes
import multiprocessing
import threading
from support.small import cuda, os, sys, time, torch

# as SGLang's launcher ends its scheduler
# case: child
# run: record --gpu h100 -- child
# verify

# the parent is killed first, and its death kills who uses the card
# case: tree
# run: record --gpu h100 -- tree
# verify
spawn = multiprocessing.get_context("spawn")

def work(ready):
    if sys.argv[1] == "tree":
        torch.cuda.init()
        ctypes.CDLL(None).prctl(1, 9)
    kept = cuda.ones(1 << 20)
    if sys.argv[1] == "child":
        threading.Thread(target=time.sleep, args=(100,)).start()
    ready.put(os.getpid())
    time.sleep(100)
    del kept

def control(ready):
    spawn.Process(target=work, args=(ready,)).start()
    time.sleep(100)

if __name__ == "__main__":
    ready = spawn.Queue()
    child = spawn.Process(target=work if sys.argv[1] == "child" else control, args=(ready,))
    child.start()
    worker = ready.get()
    child.kill()
    child.join()
    if worker != child.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, 9)
