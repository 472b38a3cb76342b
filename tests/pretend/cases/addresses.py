"""Addresses and streams as the driver has them."""
import ctypes
import mmap
from support.small import cuda, sys, torch

# what moves from the host leaves addresses there, which the driver gives to the next segments
# case: moved
# run: record -- moved
# verify
# match: ^above .*True, True\]

# a hole in the midst of what the host had, in parts as a library: the next segment lies there
# case: holed
# run: record -- holed
# expect: hole True

# what another stream still uses is not given out before that is over, also where no other rank is
# case: busy
# run: record --gpu h200 -- busy
# expect: busy [False, True]

def empty(mib):
    return cuda.empty(mib << 20, dtype=torch.uint8)

def moved():
    host = [torch.empty(16 << 20) for _ in range(8)]
    cuda.zeros(1)
    cards = []
    while host:
        cards.append(host.pop(0).cuda())
    print("above", [c.data_ptr() > cards[0].data_ptr() for c in cards[1:]])

def holed():
    cuda.zeros(1)
    libc, mapped = ctypes.CDLL(None), mmap.mmap(-1, 768 << 20)
    at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    libc.mprotect(ctypes.c_void_p(at + (512 << 20)), ctypes.c_size_t(128 << 20), mmap.PROT_READ)
    before = empty(600)
    libc.munmap(ctypes.c_void_p(at + (64 << 20)), ctypes.c_size_t(400 << 20))
    print("hole", empty(200).data_ptr() > before.data_ptr())

def busy():
    side, w, places = torch.cuda.Stream(), cuda.empty(8192, 8192, dtype=torch.bfloat16), []
    for wait in (False, True):
        with torch.cuda.stream(side):
            x = empty(64)
        torch.cuda.current_stream().wait_stream(side)
        for _ in range(20):
            w @ w
        x.record_stream(torch.cuda.current_stream())
        place = x.data_ptr()
        del x
        if wait:
            torch.cuda.synchronize()
        with torch.cuda.stream(side):
            places.append(empty(64).data_ptr() == place)
    print("busy", places)

globals()[sys.argv[1]]()
