# SPDX-License-Identifier: Apache-2.0
"""Products with uneven sides, as Inductor measures them before it pads: products.py OUT.csv SECONDS, on a card with nothing else running

A row: number of products, type, layout (is the first, the second factor transposed?), m, k, n, which factors are padded beforehand; and the best time in
ms of the product as it is, of padding and the product of the padded ones, and of one with even sides.
"""
import csv
import random
import sys
import time

import torch
from torch._inductor.fx_passes import pad_mm as P
from torch._inductor.runtime.benchmarking import benchmarker

SIDES = [64, 100, 197, 256, 300, 511, 512, 577, 768, 777, 1000, 1001, 1023, 1024, 1536, 2047, 2048, 3000, 4096, 4095, 4097, 8192, 11111, 16384,
         30522, 32001, 32003, 50257, 50265, 65536]
rng = random.Random(3)


def took(f):
    return benchmarker.benchmark_gpu(f, warmup=5)


def factor(batch, rows, columns, across, kind):
    batch = (batch,) if batch > 1 else ()
    if across:
        return torch.randn(*batch, columns, rows, device="cuda", dtype=kind).transpose(-1, -2)
    return torch.randn(*batch, rows, columns, device="cuda", dtype=kind)


def times(batch, kind, layout, m, k, n, unit, before):
    """before: which factors are padded before the time is taken; only their margins are then written."""
    x, y = factor(batch, m, k, layout[0] == "t", kind), factor(batch, k, n, layout[1] == "t", kind)
    mp, kp, np = (P.get_padded_length(side, unit) for side in (m, k, n))
    many, padded, steps = batch > 1, [x, y], []
    if before[0] and (mp or kp):
        padded[0] = P.pad_mat1(x, m_padded_length=mp, k_padded_length=kp, is_bmm=many)
        steps.append(lambda: padded[0][..., -mp:, -kp:].fill_(0))
    if before[1] and (kp or np):
        padded[1] = P.pad_mat2(y, k_padded_length=kp, n_padded_length=np, is_bmm=many)
        steps.append(lambda: padded[1][..., -kp:, -np:].fill_(0))
    product = P.pad_bmm if many else P.pad_mm
    steps.append(lambda: product(*padded, mp, kp, np, mat1_pre_padded=before[0], mat2_pre_padded=before[1]))
    even = factor(batch, m + mp, k + kp, layout[0] == "t", kind), factor(batch, k + kp, n + np, layout[1] == "t", kind)
    return took(lambda: torch.matmul(x, y)), took(lambda: [step() for step in steps]), took(lambda: torch.matmul(*even))


def main():
    out, end = csv.writer(open(sys.argv[1], "w"), lineterminator="\n"), time.time() + float(sys.argv[2])
    out.writerow("op type layout m k n pre1 pre2 ori_ms pad_ms aligned_ms".split())
    while time.time() < end:
        kind = rng.choice([torch.bfloat16, torch.bfloat16, torch.float16, torch.float32])
        unit, batch = 4 if kind == torch.float32 else 8, rng.choice([1, 1, 1, 32, 96])
        m, k, n = (rng.choice(SIDES if batch == 1 else SIDES[:17]) for _ in range(3))
        if m * k + k * n + m * n > 700e6 / batch or 2 * m * k * n * batch > 6e12:
            continue
        if not any(side % unit for side in (m, k, n)) or not P.is_mm_compute_bound(m, k, n, kind):
            continue
        layout = rng.choice(["nn", "nt", "tn"])
        for before in {(False, False), (rng.random() < 0.5 and layout[0] == "n", rng.random() < 0.3 and layout[1] == "n")}:
            measured = times(batch, kind, layout, m, k, n, unit, before)
            out.writerow([batch, str(kind)[6:], layout, m, k, n, *map(int, before), *("%.4f" % t for t in measured)])


main()
