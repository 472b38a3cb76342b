#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The size classes of slab beside those of jemalloc:

    LD_PRELOAD=libjemalloc.so.2 classes.py

jemalloc says what it would grant (nallocx). slab's unit is 512 B and jemalloc's 16, so sizes are 32 times as large; slab rounds
large blocks up to its pages of 2 MiB, which jemalloc has no counterpart of at this scale. CUFRAG names the program.
One line: policy,sizes,same,first difference. Exit status 1: something differs.
"""
import csv
import ctypes
import os
import subprocess
import sys
import tempfile

UNIT, SCALE, PAGE, SMALL = 512, 32, 2 << 20, 1 << 20


def granted(sizes):
    """By slab, one request after another: what is allocated grows by what is granted."""
    program = os.environ.get("CUFRAG", "build/release/cufrag")
    with tempfile.TemporaryDirectory() as work:
        with open(work + "/t.csv", "w") as f:
            f.write("event,time_us,action,address,bytes\n")
            for i, n in enumerate(sizes):
                f.write(f"{i},{i},alloc,{hex((i + 1) << 40)},{n}\n")
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        out = subprocess.run([program, "export", "--to", "csv", "--policy", "slab", "--capacity", "10T", work + "/t.csv"], check=True, env=env, stdout=subprocess.PIPE)
    total = [int(r["allocated_bytes"]) for r in csv.DictReader(out.stdout.decode().splitlines())]
    return [b - a for a, b in zip([0] + total, total)]


def main():
    nallocx = ctypes.CDLL(None).nallocx
    nallocx.restype, nallocx.argtypes = ctypes.c_size_t, [ctypes.c_size_t, ctypes.c_int]
    sizes = sorted({max(1, s + d) for k in range(9, 31) for q in range(8) for s in [(8 + q) << (k - 3)] for d in (-1, 0, 1)})
    first, same = "", 0
    for n, got in zip(sizes, granted(sizes)):
        want = SCALE * nallocx((max(n, UNIT) + SCALE - 1) // SCALE, 0)
        if want > SMALL:
            want = (want + PAGE - 1) // PAGE * PAGE
        same += want == got
        if want != got and not first:
            first = f"{n} bytes: {want} there, {got} in cufrag"
    print(f"slab,{len(sizes)},{same},{first or 'none'}")
    sys.exit(bool(first))


main()
