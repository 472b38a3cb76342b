#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of CuPy and JAX: arrays.py NAME.

Those of CuPy run without its pool, so that a recorder sees each array. That of JAX runs under its
own pool, whose log (docs/record.md) holds each request.
"""
import random
import sys

rng = random.Random(5)


def cupy():
    import cupy
    cupy.cuda.set_allocator(None)
    cupy.random.seed(5)
    return cupy


def joins():
    """Tables joined by a key, filtered and kept for a while."""
    c = cupy()
    table = lambda n: {k: c.random.randint(0, 60000, n) for k in ("key", "a", "b", "d")}

    def join(left, right):
        order = c.argsort(right["key"])
        keys = right["key"][order]
        low = c.searchsorted(keys, left["key"])
        count = c.searchsorted(keys, left["key"], "right") - low
        ends = c.cumsum(count)
        at = c.arange(int(ends[-1]))
        i = c.searchsorted(ends, at, "right")
        j = order[low[i] + at - (ends - count)[i]]
        return {**{k: v[i] for k, v in left.items()}, **{k + "r": v[j] for k, v in right.items()}}

    kept = []
    for _ in range(60):
        both = join(table(rng.randint(10000, 900000)), table(rng.randint(1000, 200000)))
        keep = both["a"] > rng.randint(0, 60000)
        kept.append({k: v[keep] for k, v in both.items()})
        del kept[:-rng.randint(1, 6)]


def groups():
    """Groups by keys of few and of many values: sums, means, quantiles, ranks."""
    c = cupy()
    results = {}
    for step in range(80):
        n, many = rng.randint(100000, 3000000), rng.choice((10, 1000, 300000))
        key, x = c.random.randint(0, many, n), c.random.random(n, dtype="f4")
        u, which = c.unique(key, return_inverse=True)
        total, count = c.bincount(which, x), c.bincount(which)
        mean = total / count
        deviation = c.sqrt(c.bincount(which, (x - mean[which])**2) / count)
        order = c.lexsort(c.stack([x, which.astype("f4")]))
        starts = c.cumsum(count) - count
        results[step] = u, mean, deviation, x[order][starts + count // 2]
        if step % 8 == 7:
            c.concatenate([r[1] for r in results.values()]).sort()
            results = {k: results[k] for k in rng.sample(sorted(results), 3)}


def solvers():
    """Poisson's equation: multigrid, conjugate gradients on a sparse matrix, and by FFT."""
    c = cupy()
    from cupyx.scipy import sparse
    from cupyx.scipy.sparse.linalg import cg

    def smooth(u, f, times):
        for _ in range(times):
            p = c.pad(u, 1)
            u = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] + f)
        return u

    def cycle(u, f):
        u = smooth(u, f, 3)
        if len(u) > 16:
            p = c.pad(u, 1)
            r = f + p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u
            r = r.reshape(len(u) // 2, 2, -1, 2).sum((1, 3))
            u = u + cycle(c.zeros_like(r), r).repeat(2, 0).repeat(2, 1)
        return smooth(u, f, 3)

    for n in (1024, 512, 2048):
        f, u = c.random.random((n, n)), c.zeros((n, n))
        for _ in range(6):
            u = cycle(u, f)
        k = c.fft.fftfreq(n)
        wave = 4 * c.sin(c.pi * k[:, None])**2 + 4 * c.sin(c.pi * k)**2 + 1e-9
        u - c.fft.ifft2(c.fft.fft2(f) / wave).real
    for n in (200, 350):
        line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (n, n), format="csr")
        one = sparse.identity(n, format="csr")
        cg((sparse.kron(line, one) + sparse.kron(one, line)).tocsr(), c.ones(n * n), maxiter=60)


def jax_language():
    """A language model in JAX on batches of five lengths, each compiled, with evaluation."""
    import jax
    import jax.numpy as np
    d, heads = 512, 8
    keys = iter(jax.random.split(jax.random.key(0), 200))
    made = lambda *s: jax.random.normal(next(keys), s) * 0.02
    w = dict(emb=made(16000, d), layers=[dict(qkv=made(d, 3 * d), o=made(d, d), up=made(d, 4 * d),
                                              down=made(4 * d, d)) for _ in range(6)])

    def loss(w, x):
        y = w["emb"][x[:, :-1]]
        for f in w["layers"]:
            q, k, v = np.split((y @ f["qkv"]).reshape(*y.shape[:2], heads, -1), 3, -1)
            a = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            y = y + a.reshape(y.shape) @ f["o"]
            y = y + jax.nn.gelu(y @ f["up"]) @ f["down"]
        p = jax.nn.log_softmax(y @ w["emb"].T)
        return -np.take_along_axis(p, x[:, 1:, None], 2).mean()

    step = jax.jit(lambda w, x: jax.tree.map(lambda a, b: a - 0.1 * b, w, jax.grad(loss)(w, x)))
    measure, found = jax.jit(loss), []
    for i in range(80):
        length = rng.choice((128, 200, 320, 512, 777))
        x = jax.random.randint(jax.random.key(i), (8, length), 0, 16000)
        w = step(w, x)
        if i % 4 == 3:
            found.append(measure(w, x))
    print(float(sum(found)))


if __name__ == "__main__":
    {f.__name__: f for f in (joins, groups, solvers, jax_language)}[sys.argv[1]]()
