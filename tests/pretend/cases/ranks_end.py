"""Ranks that end early, late, or never: ranks_end.py HOW."""
import signal
from support.ranks import begin, dist, end, expect, full, rank, world
from support.small import os, sys, time

# case: no_step
# run: record --ranks roles --world 4 -- no_step
# match: rank 0 stands for ranks 0-3; the same ran: 3$

# case: leave_early
# run: record --ranks 0,1 -- leave_early
# expect: left alone [0, 0]
# match: waited for a rank that has ended

# case: deaf
# python: ended("KILL", "", "cufrag was killed, so the ranks are ended")
# python: ended("TERM", "-", "did not end within 20 s are killed")

# case: stuck
# fails: record --ranks 0,1 -- stuck
# match: ranks wait for each other
# match: ranks_end.py.*in stuck

# what Python raises while C calls it back is dropped
# case: end_waiting
# fails: record --ranks 0,1 -- end_waiting
# expect: rank 1 done
# never: rank 0 done
# match: ended with status 143
# check: any(d["device"] == 1 for d in info()["devices"])

# torchrun's store still has the names of the first attempt's groups
# case: restart
# run: record --gpus 2 --- torchrun --standalone --nproc-per-node 2 --max-restarts 1 CASE restart
# match 2: ^rank . done
# never: is .*, not 

def stuck():
    """On cards, too: each waits for what the other sends afterwards."""
    x = full(0)
    dist.recv(x, rank ^ 1)
    x.tolist()
    dist.send(x, rank ^ 1)

def end_waiting():
    """Rank 0 is to end while it waits for a value of rank 1."""
    pids = [None] * world
    dist.all_gather_object(pids, os.getpid())
    if rank:
        time.sleep(2)
        os.kill(pids[0], signal.SIGTERM)
        time.sleep(2)
        return
    x = full(rank)
    dist.all_reduce(x)
    x.tolist()
    time.sleep(2)

def leave_early():
    """Rank 1 ends before it was a member of any group of NCCL's."""
    if rank:
        os._exit(0)
    x = full(5)
    dist.all_reduce(x)
    print("left alone", x.tolist(), flush=True)
    os._exit(0)

def deaf():
    """Rank 0 waits inside of the library, rank 1 does not end when it is asked to."""
    print("rank %d is %d" % (rank, os.getpid()), flush=True)
    if rank:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        time.sleep(100)
    x = full(5)
    dist.all_reduce(x)
    x.tolist()

def no_step():
    """As what generates does: it takes no step, and ends without exit handlers."""
    x = full(rank)
    dist.all_reduce(x)
    print("rank %d done" % rank, flush=True)
    os._exit(0)

def restart():
    """The first attempt fails; in the second, rank 0 comes last to its first collective."""
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if not first and rank == 0:
        time.sleep(3)
    x = full(rank, 1 << 18)  # so much that what was read is given back
    dist.all_reduce(x)
    expect("sum", x[0].item(), world * (world - 1) // 2)
    if first:
        sys.exit(rank)

begin(takes_card=sys.argv[1] not in ("restart", "leave_early"))
globals()[sys.argv[1]]()
end()
