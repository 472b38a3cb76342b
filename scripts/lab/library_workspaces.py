#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuSOLVER, cuFFT, cuSPARSE and cuDNN's recurrent layers take while they work: library_workspaces.py OUT_FOLDER [SECONDS SEED [NAME...]]

On a card, with a PyTorch that has its CUDA libraries. Four tables, one line for each question; each is made by a process of its own:

    solver.csv   function,type,m,n,k,batch,bytes,host_bytes      what ..._bufferSize answers; type S, D, C or Z
    fft.csv      kind,double,sizes,batch,bytes                   cufftXtMakePlanMany; kind R2C, C2R, C2C
    sparse.csv   function,type,format,transposed,rows,cols,elements,columns,algorithm,bytes      cusparse..._bufferSize, 32-bit indices
    rnn.csv      algorithm,cell,bias,both_ways,type,math,input,hidden,projected,layers,dropout,packed,steps,batch,train,workspace,reserve,weights
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
MOST = 40000  # answers of one library


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


LENGTHS = [8, 16, 25, 32, 33, 60, 64, 97, 100, 127, 128, 200, 224, 256, 320, 400, 480, 500, 512, 640, 768, 800, 1000, 1009, 1024, 1536, 2000,
           2048, 3000, 4096, 4099, 5000, 8000, 8192, 10000, 16000, 16384, 22050, 32000, 32768, 44100, 48000, 65536, 65537, 100000, 131072, 262144,
           1000000, 1048576]


def length(rng, most):
    """Powers of two, lengths that programs have, products of small primes, any."""
    kind = rng.random()
    if kind < 0.2:
        n = 1 << rng.randint(1, 22)
    elif kind < 0.4:
        n = rng.choice(LENGTHS)
    elif kind < 0.7:
        n = 1
        while n < 2 or rng.random() < 0.75:
            n *= rng.choice([2, 2, 2, 2, 3, 3, 5, 5, 7, 11, 13, 17, 31])
    else:
        n = int(2 ** rng.uniform(1, 22))
    return n if n <= most else length(rng, most)


def fft(path, end, rng):
    torch.fft.rfft(torch.ones(8, device="cuda"))
    lib = ctypes.CDLL([n for n in ("libcufft.so.12", "libcufft.so.11") if loaded(n)][0])
    kinds = {"R2C": (0, 4, 4), "C2R": (4, 0, 4), "C2C": (4, 4, 4)}
    with open(path, "w") as out:
        print("kind,double,sizes,batch,bytes", file=out)
        while time.monotonic() < end:
            rank, batch = rng.choice([1, 1, 1, 1, 1, 1, 2, 2, 2, 3]), rng.choice([1, 1, 2, 3, 8, 20, 64, 100, 512, 1000])
            size = [length(rng, {1: 1 << 22, 2: 1 << 18, 3: 1 << 9}[rank]) for _ in range(rank)]
            kind, double = rng.choice(list(kinds)), int(rng.random() < 0.15)
            points = batch
            for s in size:
                points *= s
            if points > 1 << 26:
                continue
            plan, n, bytes_ = INT(), (LONG * rank)(*size), ctypes.c_size_t()
            lib.cufftCreate(ctypes.byref(plan))
            lib.cufftSetAutoAllocation(plan, 0)
            a, b, c = (t + double for t in kinds[kind])
            if not lib.cufftXtMakePlanMany(plan, rank, n, NULL, LONG(1), LONG(0), a, NULL, LONG(1), LONG(0), b, LONG(batch), ctypes.byref(bytes_), c):
                print(kind, double, "x".join(map(str, size)), batch, bytes_.value, sep=",", file=out, flush=True)
            lib.cufftDestroy(plan)


def sparse(path, end, rng):
    """Products with dense matrices (SpMM) and vectors (SpMV), and sampled products (SDDMM)."""
    torch.sparse.mm(torch.eye(4, device="cuda").to_sparse(), torch.ones(4, 4, device="cuda"))
    lib = ctypes.CDLL("libcusparse.so.12")
    some = torch.zeros(1 << 24, dtype=torch.uint8, device="cuda")
    A = ctypes.c_void_p(some.data_ptr())  # zeros are valid offsets of rows, too
    handle, m, b, c = (ctypes.c_void_p() for _ in range(4))
    lib.cusparseCreate(ctypes.byref(handle))
    one = (ctypes.c_double * 2)(1, 0)
    bytes_ = ctypes.c_size_t()
    with open(path, "w") as out:
        print("function,type,format,transposed,rows,cols,elements,columns,algorithm,bytes", file=out)
        for _ in range(MOST):
            if time.monotonic() > end:
                break
            rows, cols, columns = (int(2 ** rng.uniform(0, 17)) for _ in range(3))
            columns = min(columns, 2048)
            elements = min(int(2 ** rng.uniform(0, 20)), rows * cols)
            kind, form, turned = rng.choice([0, 0, 0, 1, 2, 14]), rng.choice(["csr", "csr", "coo"]), rng.choice([0, 0, 1])
            name = rng.choice(["SpMM", "SpMM", "SpMV", "SDDMM"])
            algorithm = rng.choice([0, 1, 2, 3, 4, 5, 6]) if name == "SpMM" else 0
            compute = kind if kind in (0, 1) else 0
            make = lib.cusparseCreateCsr if form == "csr" else lib.cusparseCreateCoo
            types = (2, 2, 0, kind) if form == "csr" else (2, 0, kind)  # 32-bit indices from 0
            rc = make(ctypes.byref(m), LONG(rows), LONG(cols), LONG(elements), A, A, A, *types)
            x, y = (rows, cols) if turned else (cols, rows)
            order = rng.choice([1, 2])
            bytes_.value = 0
            if name == "SpMV":
                lib.cusparseCreateDnVec(ctypes.byref(b), LONG(x), A, kind)
                lib.cusparseCreateDnVec(ctypes.byref(c), LONG(y), A, kind)
                rc |= lib.cusparseSpMV_bufferSize(handle, turned, ctypes.byref(one), m, b, ctypes.byref(one), c, compute, 0, ctypes.byref(bytes_))
            else:
                if name == "SDDMM":
                    x, y = rows, cols
                wide = lambda r, k: k if order == 2 else r  # noqa: E731
                d = (x, columns) if name == "SpMM" else (x, columns)
                e = (y, columns) if name == "SpMM" else (columns, y)
                lib.cusparseCreateDnMat(ctypes.byref(b), LONG(d[0]), LONG(d[1]), LONG(wide(*d)), A, kind, order)
                lib.cusparseCreateDnMat(ctypes.byref(c), LONG(e[0]), LONG(e[1]), LONG(wide(*e)), A, kind, order)
                if name == "SpMM":
                    rc |= lib.cusparseSpMM_bufferSize(handle, turned, 0, ctypes.byref(one), m, b, ctypes.byref(one), c, compute, algorithm, ctypes.byref(bytes_))
                else:
                    rc |= lib.cusparseSDDMM_bufferSize(handle, 0, 0, ctypes.byref(one), b, c, ctypes.byref(one), m, compute, 0, ctypes.byref(bytes_))
            if not rc:
                print(name, kind, form, turned, rows, cols, elements, columns if name != "SpMV" else 1, f"{algorithm}o{order}", bytes_.value, sep=",", file=out)
            (lib.cusparseDestroyDnVec if name == "SpMV" else lib.cusparseDestroyDnMat)(b)
            (lib.cusparseDestroyDnVec if name == "SpMV" else lib.cusparseDestroyDnMat)(c)
            lib.cusparseDestroySpMat(m)


def rnn(path, end, rng):
    torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
    lib = ctypes.CDLL("libcudnn.so.9")
    handle, layer, data, drop = (ctypes.c_void_p() for _ in range(4))
    for name, out in (("", handle), ("RNNDescriptor", layer), ("RNNDataDescriptor", data), ("DropoutDescriptor", drop)):
        getattr(lib, "cudnnCreate" + name)(ctypes.byref(out))
    states, work, kept, weights = (ctypes.c_size_t() for _ in range(4))
    lib.cudnnDropoutGetStatesSize(handle, ctypes.byref(states))
    memory = torch.empty(states.value, dtype=torch.uint8, device="cuda")
    with open(path, "w") as out:
        print("algorithm,cell,bias,both_ways,type,math,input,hidden,projected,layers,dropout,packed,steps,batch,train,workspace,reserve,weights", file=out)
        for _ in range(MOST):
            if time.monotonic() > end:
                break
            cell, bias, both, kind = rng.choice([0, 1, 2, 2, 2, 3, 3]), rng.choice([0, 2, 2, 2]), int(rng.random() < 0.4), rng.choice([0, 0, 2, 9])
            layers, share = rng.choice([1, 1, 1, 2, 2, 3, 4]), rng.choice([0, 0.2])
            width = rng.choice([1, 3, 7, 16, 32, 40, 64, 80, 100, 128, 200, 256, 300, 512, 768, 1024])
            hidden = rng.choice([1, 5, 8, 12, 33, 40, 48, 96, 144, 192, 16, 20, 32, 50, 64, 100, 128, 160, 200, 256, 300, 384, 512, 640, 768, 1024, 1500, 2048])
            projected = hidden if cell != 2 or rng.random() < 0.8 else max(1, hidden // rng.choice([2, 4]))
            steps = rng.choice([1, 2, 5, 10, 20, 35, 50, 64, 70, 100, 128, 200, 256, 500, 512])
            batch, packed = rng.choice([1, 2, 3, 4, 5, 7, 8, 16, 20, 32, 48, 50, 64, 100, 128, 256]), int(rng.random() < 0.25)
            algorithm = rng.choice([0, 3])  # standard; persistent, for few hidden values
            train, math = rng.choice([0, 1, 1]), rng.choice([1, 1, 2]) if kind == 0 else 1
            lib.cudnnSetDropoutDescriptor(drop, handle, ctypes.c_float(share), ctypes.c_void_p(memory.data_ptr()), states, LONG(1))
            rc = lib.cudnnSetRNNDescriptor_v8(layer, algorithm, cell, bias, both, 0, kind, 0, (0 if math == 1 else 3) if kind == 0 else kind == 2, width,
                                              hidden, projected, layers, drop, not packed)  # padded input, as PyTorch gives it
            lengths = [max(1, steps - i // 2) if packed else steps for i in range(batch)]
            if rc or lib.cudnnSetRNNDataDescriptor(data, kind, packed, steps, batch, width, (INT * batch)(*lengths), None) or \
                    lib.cudnnGetRNNTempSpaceSizes(handle, layer, train, data, ctypes.byref(work), ctypes.byref(kept)):
                continue
            lib.cudnnGetRNNWeightSpaceSize(handle, layer, ctypes.byref(weights))
            print(algorithm, cell, bias, both, kind, math, width, hidden, projected, layers, share, packed, steps, batch, train, work.value, kept.value,
                  weights.value, sep=",", file=out)


def main():
    folder, seconds, seed = (sys.argv[1:] + ["60", "1"][len(sys.argv) - 2:])[:3]
    names = sys.argv[4:]
    end = time.monotonic() + float(seconds)
    os.makedirs(folder, exist_ok=True)
    for name, run in (("solver", lambda p, *_: solver(p)), ("rnn", rnn), ("fft", fft), ("sparse", sparse)):
        if (not names or name in names) and not os.fork():
            try:
                run(os.path.join(folder, name + ".csv"), end, random.Random(seed))
            except Exception as error:
                print("%s: %s: %s" % (name, type(error).__name__, error), file=sys.stderr, flush=True)
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


main()
