# SPDX-License-Identifier: Apache-2.0
"""How little room beside the context is enough for a program of beside_programs.py: python room.py PROGRAM..., on a card; or
cufrag record --no-gpu --gpu h100 -- python room.py run PROGRAM MIB: does it complete with so much? The rest of the card is taken first."""
import os
import subprocess
import sys

import beside_programs
import torch

TOO_MUCH, STEP = 2048, 2


def run(name, room_mib):
    torch.cuda.init()
    free = torch.cuda.mem_get_info()[0]
    rest = torch.empty((free - (room_mib << 20)) >> 21 << 21, dtype=torch.uint8, device="cuda")
    beside_programs.x = torch.ones(1024, 1024, device="cuda")
    beside_programs.PROGRAMS[name]()
    torch.cuda.synchronize()
    del rest


def least(name):
    low, high = 0, TOO_MUCH
    while high - low > STEP:
        middle = (low + high) // (2 * STEP) * STEP
        done = subprocess.run([sys.executable, __file__, "run", name, str(middle)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        low, high = (low, middle) if not done.returncode else (middle, high)
    return high


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]))
        os._exit(0)
    for program in sys.argv[1:]:
        print("%s,%d" % (program, least(program)), flush=True)
