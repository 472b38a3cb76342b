#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuSOLVER, cuFFT and cuDNN's recurrent layers take while they work: library_workspaces.py OUT_FOLDER [SECONDS]

On a card, with a PyTorch that has its CUDA libraries. Three tables, one line for each question:

    solver.csv   function,type,m,n,k,batch,bytes,host_bytes      what ..._bufferSize answers; type S, D, C or Z
    fft.csv      kind,sizes,batch,bytes                          cufftXtMakePlanMany; kind R2C, C2R, C2C of single precision
    rnn.csv      cell,bias,both_ways,type,math,input,hidden,projected,layers,dropout,packed,steps,batch,train,workspace,reserve,weights
                                                                 what cudnnGetRNNTempSpaceSizes answers; numbers are cuDNN's own
"""
import ctypes
import os
import random
import sys
import time

import torch

SIDES = [1, 2, 3, 5, 8, 13, 16, 20, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 150, 192, 200, 255, 256, 257, 300, 384, 400, 500, 512,
         513, 600, 768, 1000, 1024, 1025, 1500, 2000, 2048, 2049, 3000, 4096, 5000, 8192]
FEW = [1, 3, 8, 20, 32, 33, 64, 100, 128, 256, 300, 512, 1000, 1024, 2048, 4096]
TYPES = {"S": (4, 0, 0), "D": (8, 1, 1), "C": (8, 4, 0), "Z": (16, 5, 1)}  # bytes, cudaDataType, that of its absolute value
INT, LONG = ctypes.c_int, ctypes.c_longlong
NULL = ctypes.c_void_p(None)


def solver(path):
    torch.linalg.inv(torch.eye(4, device="cuda"))
    lib = ctypes.CDLL([n for n in ("libcusolver.so.12", "libcusolver.so.11") if loaded(n)][0])
    missing = lambda *_: 1
    some = torch.empty(1 << 26, device="cuda")
    A = ctypes.c_void_p(some.data_ptr())  # nobody reads it
    handle, params, jacobi, eigen = (ctypes.c_void_p() for _ in range(4))
    lib.cusolverDnCreate(ctypes.byref(handle))
    lib.cusolverDnCreateParams(ctypes.byref(params))
    lib.cusolverDnCreateGesvdjInfo(ctypes.byref(jacobi))
    lib.cusolverDnCreateSyevjInfo(ctypes.byref(eigen))
    out = open(path, "w")
    print("function,type,m,n,k,batch,bytes,host_bytes", file=out)
    work = INT()
    dev, host = ctypes.c_size_t(), ctypes.c_size_t()

    def ask(name, t, m, n, k, batch, *args):
        """Answers in numbers of elements."""
        work.value = -1
        rc = getattr(lib, "cusolverDn%s%s_bufferSize" % (t, name), missing)(handle, *args)
        if not rc and work.value >= 0:
            print(name, t, m, n, k, batch, work.value * TYPES[t][0], 0, sep=",", file=out)

    def ask_x(name, t, m, n, batch, *args):
        dev.value = host.value = 1 << 60
        rc = getattr(lib, "cusolverDn%s_bufferSize" % name, missing)(handle, params, *args)
        if not rc and dev.value < 1 << 60:
            print(name, t, m, n, 0, batch, dev.value, host.value, sep=",", file=out)
    w, d, h = ctypes.byref(work), ctypes.byref(dev), ctypes.byref(host)
    for t, (_, kind, real) in TYPES.items():
        dt, rt = INT(kind), INT(real)
        kinds = ("or", "sy") if t in "SD" else ("un", "he")
        for n in SIDES:
            ask("getrf", t, n, n, 0, 1, n, n, A, n, w)
            ask("potrf", t, n, n, 0, 1, 0, n, A, n, w)
            ask("sytrf", t, n, n, 0, 1, n, A, n, w)
            ask_x("Xpotrf", t, n, n, 1, 0, LONG(n), dt, A, LONG(n), dt, d, h)
            for vectors in (0, 1):
                ask(kinds[1] + "evd", t, n, n, vectors, 1, vectors, 0, n, A, n, A, w)
                ask(kinds[1] + "evj", t, n, n, vectors, 1, vectors, 0, n, A, n, A, w, eigen)
                ask_x("Xsyevd", t, n, vectors, 1, vectors, 0, LONG(n), dt, A, LONG(n), rt, A, dt, d, h)
                for batch in (1, 4, 64, 1000):
                    if n * n * batch < 1 << 28:
                        ask_x("XsyevBatched", t, n, vectors, batch, vectors, 0, LONG(n), dt, A, LONG(n), rt, A, dt, d, h, LONG(batch))
                        ask(kinds[1] + "evjBatched", t, n, n, vectors, batch, vectors, 0, n, A, n, A, w, eigen, batch)
                if n <= 2049:
                    c = INT(kind | 4)
                    ask_x("Xgeev", t, n, vectors, 1, 0, vectors, LONG(n), dt, A, LONG(n), c, A, dt, A, LONG(n), dt, A, LONG(n), dt, d, h)
        for m in FEW:
            for n in FEW:
                ask("getrf", t, m, n, 0, 1, m, n, A, m, w)
                ask("geqrf", t, m, n, 0, 1, m, n, A, m, w)
                ask_x("Xgeqrf", t, m, n, 1, LONG(m), LONG(n), dt, A, LONG(m), dt, A, dt, d, h)
                if m >= n:
                    ask("gesvd", t, m, n, 0, 1, m, n, w)
                    for k in (1, n // 2, n):
                        ask(kinds[0] + "gqr", t, m, n, k, 1, m, n, k, A, m, A, w)
                    for batch in (1, 4, 64):
                        if m * n * batch < 1 << 26:
                            ask("gesvdaStridedBatched", t, m, n, 1, batch, 1, n, m, n, A, m, LONG(m * n), A, LONG(n), A, m,
                                LONG(m * n), A, n, LONG(n * n), w, batch)
                for k in (1, min(m, n)):
                    ask(kinds[0] + "mqr", t, m, n, k, 1, 0, 1 if t in "SD" else 2, m, n, k, A, m, A, A, m, w)
                for vectors in (0, 1):
                    ask("gesvdj", t, m, n, vectors, 1, vectors, 1, m, n, A, m, A, A, m, A, n, w, jacobi)
                    for batch in (1, 4, 64):
                        if max(m, n) <= 32:
                            ask("gesvdjBatched", t, m, n, vectors, batch, vectors, m, n, A, m, A, A, m, A, n, w, jacobi, batch)
    out.close()


def loaded(name):
    with open("/proc/self/maps") as f:
        return name in f.read()


LENGTHS = [8, 16, 25, 32, 60, 64, 97, 100, 127, 128, 200, 224, 256, 320, 400, 480, 500, 512, 640, 768, 800, 1000, 1009, 1024, 1536, 2000,
           2048, 3000, 4096, 4099, 5000, 8000, 8192, 10000, 16000, 16384, 22050, 32000, 32768, 44100, 48000, 65536, 65537, 100000, 131072, 262144,
           1000000, 1048576]


def fft(path, end):
    torch.fft.rfft(torch.ones(8, device="cuda"))
    lib = ctypes.CDLL([n for n in ("libcufft.so.12", "libcufft.so.11") if loaded(n)][0])
    kinds = {"R2C": (0, 4, 4), "C2R": (4, 0, 4), "C2C": (4, 4, 4)}
    sizes = [(n,) for n in LENGTHS]
    sizes += [(a, b) for a in (16, 32, 64, 85, 100, 128, 224, 256, 421, 512, 1024) for b in (16, 64, 85, 100, 128, 256, 421, 512, 1024) if
              a == b or (a + b) % 3 == 0]
    sizes += [(a, a, a) for a in (8, 16, 32, 50, 64, 100, 128)] + [(8, 64, 64), (16, 32, 64)]
    with open(path, "w") as out:
        print("kind,sizes,batch,bytes", file=out)
        random.Random(1).shuffle(sizes)
        for size in sizes:
            for batch in (1, 8, 64, 1000):
                points = batch
                for s in size:
                    points *= s
                for kind, (a, b, c) in kinds.items():
                    if points > 1 << 26 or time.monotonic() > end:
                        continue
                    plan, n, bytes_ = INT(), (LONG * len(size))(*size), ctypes.c_size_t()
                    lib.cufftCreate(ctypes.byref(plan))
                    lib.cufftSetAutoAllocation(plan, 0)
                    rc = lib.cufftXtMakePlanMany(plan, len(size), n, NULL, LONG(1), LONG(0), a, NULL, LONG(1), LONG(0), b, LONG(batch),
                                                 ctypes.byref(bytes_), c)
                    if not rc:
                        print(kind, "x".join(map(str, size)), batch, bytes_.value, sep=",", file=out)
                    lib.cufftDestroy(plan)
            out.flush()


def rnn(path, end):
    rng = random.Random(3)
    torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
    lib = ctypes.CDLL("libcudnn.so.9")
    handle, layer, data, drop = (ctypes.c_void_p() for _ in range(4))
    for name, out in (("", handle), ("RNNDescriptor", layer), ("RNNDataDescriptor", data), ("DropoutDescriptor", drop)):
        getattr(lib, "cudnnCreate" + name)(ctypes.byref(out))
    states, work, kept, weights = (ctypes.c_size_t() for _ in range(4))
    lib.cudnnDropoutGetStatesSize(handle, ctypes.byref(states))
    memory = torch.empty(states.value, dtype=torch.uint8, device="cuda")
    with open(path, "w") as out:
        print("cell,bias,both_ways,type,math,input,hidden,projected,layers,dropout,packed,steps,batch,train,workspace,reserve,weights", file=out)
        while time.monotonic() < end:
            cell, bias, both, kind = rng.choice([0, 1, 2, 2, 2, 3, 3]), rng.choice([0, 2, 2, 2]), int(rng.random() < 0.4), rng.choice([0, 0, 2, 9])
            layers, share = rng.choice([1, 1, 1, 2, 2, 3, 4]), rng.choice([0, 0.2])
            width = rng.choice([1, 3, 7, 16, 32, 40, 64, 80, 100, 128, 200, 256, 300, 512, 768, 1024])
            hidden = rng.choice([1, 5, 8, 16, 20, 32, 50, 64, 100, 128, 160, 200, 256, 300, 384, 512, 640, 768, 1024, 1500, 2048])
            projected = hidden if cell != 2 or rng.random() < 0.8 else max(1, hidden // rng.choice([2, 4]))
            steps = rng.choice([1, 2, 5, 10, 20, 35, 50, 64, 70, 100, 128, 200, 256, 500, 512])
            batch, packed = rng.choice([1, 2, 4, 8, 16, 20, 32, 48, 64, 100, 128, 256]), int(rng.random() < 0.25)
            train, math = rng.choice([0, 1, 1]), rng.choice([1, 1, 2]) if kind == 0 else 1
            lib.cudnnSetDropoutDescriptor(drop, handle, ctypes.c_float(share), ctypes.c_void_p(memory.data_ptr()), states, LONG(1))
            rc = lib.cudnnSetRNNDescriptor_v8(layer, 0, cell, bias, both, 0, kind, 0, (0 if math == 1 else 3) if kind == 0 else kind == 2, width,
                                              hidden, projected, layers, drop, packed)
            lengths = [max(1, steps - i // 2) if packed else steps for i in range(batch)]
            if rc or lib.cudnnSetRNNDataDescriptor(data, kind, packed, steps, batch, width, (INT * batch)(*lengths), None) or \
                    lib.cudnnGetRNNTempSpaceSizes(handle, layer, train, data, ctypes.byref(work), ctypes.byref(kept)):
                continue
            lib.cudnnGetRNNWeightSpaceSize(handle, layer, ctypes.byref(weights))
            print(cell, bias, both, kind, math, width, hidden, projected, layers, share, packed, steps, batch, train, work.value, kept.value,
                  weights.value, sep=",", file=out)


def main():
    folder, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
    start = time.monotonic()
    os.makedirs(folder, exist_ok=True)
    for name, run in (("solver", lambda p: solver(p)), ("rnn", lambda p: rnn(p, start + seconds / 2)), ("fft", lambda p: fft(p, start + seconds))):
        try:
            run(os.path.join(folder, name + ".csv"))
        except Exception as error:
            print("%s: %s: %s" % (name, type(error).__name__, error), file=sys.stderr, flush=True)


main()
