#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of many families, drawn at random: questions for conv_trees.py, and what PyTorch takes for them.

    conv_spread.py draw SEED COUNT [FAMILY...] > QUESTIONS         # as conv_trees.py takes them
    conv_spread.py shapes SEED COUNT > SHAPES                      # without the operation, small enough to run
    conv_spread.py measure SHAPES OUT.csv PART PARTS SECONDS       # on a card, or under cufrag record --no-gpu: every PARTS-th line

A question is "OPERATION TYPE LAYOUT c k sides taps stride pad dilation groups n"; stride, pad and dilation are a number, or one for each side
("2x1"). Shapes begin with TYPE (tf32: single precision by tensor cores, as PyTorch has it; fp32: without), LAYOUT and "plain" or "transposed". A row of OUT.csv:
the shape, "forward", "data" or "filter", and bytes beside the result, or an error.
"""
import hashlib
import math
import random
import sys
import time

IMAGES = (1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 10, 12, 16, 16, 20, 24, 32, 48, 64, 96, 128)
FEW = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
WIDE = (16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 192, 224, 240, 256, 288, 320, 384, 448, 512, 576, 640, 672, 768, 960, 1024, 1280, 1536, 2048)
SIDES = (4, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
LENGTHS = (24, 49, 75, 99, 150, 187, 250, 300, 375, 400, 499, 500, 600, 750, 799, 1000, 1500, 1599, 2000, 2400, 3000, 3199, 4000, 4800, 6000, 8000, 8192, 12000, 16000, 24000)


def side_of(rng):
    side = rng.choice(SIDES)
    return max(1, side + rng.choice((-3, -2, -1, 1, 2, 3, 5))) if rng.random() < 0.35 else side


def plane(rng):
    h = side_of(rng)
    return [h, h if rng.random() < 0.6 else side_of(rng)]


def some(rng, few=0.15):
    return rng.choice(FEW) if rng.random() < few else rng.choice(WIDE)


# Each family gives c, k, sides, taps, strides, pads, dilations, groups and images.
def few_channels(rng):
    t = rng.choice((1, 2, 3, 3, 3, 4, 5, 7, 9))
    c, k = rng.choice(((some(rng, 1), some(rng, 1)), (some(rng, 1), some(rng)), (some(rng), some(rng, 1))))
    return c, k, plane(rng), [t] * 2, [rng.choice((1, 1, 1, 2))] * 2, [rng.choice((0, t // 2, t // 2))] * 2, [1] * 2, 1, rng.choice(IMAGES)


def optical_flow(rng):
    h, w = rng.choice(((440, 1024), (368, 496), (368, 768), (400, 720), (520, 960), (256, 256), (384, 512), (320, 448)))
    down, t = rng.choice((1, 2, 4, 8, 8, 8)), rng.choice(([1, 5], [5, 1], [3, 3], [3, 3], [1, 1], [7, 7]))
    c = rng.choice((2, 3, 8, 16, 24, 32, 64, 82, 96, 126, 128, 146, 160, 192, 242, 256, 324, 384))
    k = rng.choice((2, 8, 16, 24, 32, 64, 80, 82, 96, 124, 126, 128, 192, 256, 576))
    return c, k, [h // down, w // down], t, [rng.choice((1, 1, 1, 2))] * 2, [v // 2 for v in t], [1] * 2, 1, rng.choice(IMAGES[:14])


def sound(rng):
    t, stride = rng.choice(((7, 1), (3, 1), (1, 1), (4, 2), (8, 4), (10, 5), (16, 8), (5, 1), (9, 1), (11, 1), (15, 1), (31, 1), (41, 4), (10, 5), (2, 2)))
    length = rng.choice(LENGTHS) + rng.choice((0, 0, 0, 1, 2, 3, 6))
    d = rng.choice((1, 1, 1, 2, 3, 4, 5, 9, 16, 27)) if stride == 1 and t < 16 else 1
    pad = rng.choice((0, t // 2 * d, (t - 1) * d))
    c, k = some(rng, 0.2), some(rng, 0.2)
    groups = 1 if rng.random() < 0.8 else math.gcd(c, k) if rng.random() < 0.6 else math.gcd(math.gcd(c, k), 4)
    return c, k, [length], [t], [stride], [pad], [d], groups, rng.choice(IMAGES)


def spectrogram(rng):
    t, strides, d = rng.choice((([3, 9], [1, 2], [rng.choice((1, 2, 4)), 1]), ([3, 9], [1, 1], [1, 1]), ([3, 3], [1, 1], [1, 1]), ([5, 1], [3, 1], [1, 1]),
                                ([5, 1], [1, 1], [1, 1]), ([3, 8], [1, 4], [1, 1]), ([8, 1], [4, 1], [1, 1]), ([3, 1], [1, 1], [1, 1]), ([5, 5], [2, 2], [1, 1])))
    c, k = rng.choice(((1, 32), (2, 32), (32, 32), (32, 128), (128, 512), (512, 1024), (1024, 1024), (32, 1), (1024, 1), (2, 48), (48, 96), (96, 192)))
    sides = [rng.choice(LENGTHS[:16]) + rng.choice((0, 1)), rng.choice((2, 3, 5, 7, 11, 33, 65, 80, 129, 257, 513))]
    return c, k, sides, t, strides, [(a - 1) * b // 2 for a, b in zip(t, d)], d, 1, rng.choice(IMAGES)


def single_channels(rng):
    t, c = rng.choice((3, 3, 5, 5, 7, 7, 9, 13, 31)), rng.choice((*WIDE, 104, 152, 176, 200, 304, 480, 528, 816, 1056, 1152, 1344, 1632, 2304, 3072, 3840))
    stride, k = rng.choice((1, 1, 2)), c * rng.choice((1, 1, 1, 1, 2))
    return c, k, plane(rng), [t] * 2, [stride] * 2, [rng.choice((t // 2, t // 2, 0))] * 2, [rng.choice((1, 1, 1, 2))] * 2, c, rng.choice(IMAGES)


def generator(rng):
    """Modulated filters: images are groups of one image."""
    n, side = rng.choice((1, 2, 3, 4, 6, 8, 12, 16)), rng.choice((4, 8, 16, 32, 64, 128, 256, 512))
    c, k, t = rng.choice((32, 64, 128, 256, 512)), rng.choice((3, 32, 64, 128, 256, 512)), rng.choice((1, 3, 3, 3))
    if rng.random() < 0.3:  # a blur of each channel
        side, t, pad = side + rng.choice((0, 1)), 4, rng.choice((1, 2, 0))
        return n * c, n * c, [side] * 2, [t] * 2, [rng.choice((1, 1, 2))] * 2, [pad] * 2, [1] * 2, n * c, 1
    stride = rng.choice((1, 1, 2)) if t == 3 else 1
    return n * c, n * k, [side * stride + stride - 1] * 2, [t] * 2, [stride] * 2, [t // 2 if stride == 1 else 0] * 2, [1] * 2, n, 1


def grouped(rng):
    width = rng.choice((4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 112, 120, 128, 232, 264))
    groups = rng.choice((2, 2, 3, 4, 4, 5, 6, 8, 12, 16, 22, 32, 64))
    t, c = rng.choice((1, 3, 3, 3, 5)), width * groups
    k = c if rng.random() < 0.8 else groups * rng.choice((4, 8, 16, 32, 64))
    return c, k, plane(rng), [t] * 2, [rng.choice((1, 1, 2))] * 2, [t // 2] * 2, [1] * 2, groups, rng.choice(IMAGES)


def dilated(rng):
    d, c, k = rng.choice((2, 2, 3, 4, 6, 8, 12, 18, 24, 36)), some(rng), some(rng)
    return c, k, plane(rng), [3] * 2, [1] * 2, [rng.choice((d, d, d, 0, 1))] * 2, [d] * 2, 1, rng.choice(IMAGES[:16])


def volumes(rng):
    t = rng.choice(([3] * 3, [3] * 3, [3] * 3, [1] * 3, [2] * 3, [4] * 3, [5] * 3, [7] * 3, [1, 3, 3], [3, 1, 1], [1, 7, 7], [3, 7, 7], [3, 5, 5], [2, 4, 4]))
    stride = rng.choice((1, 1, 1, 2))
    strides = t if t in ([2] * 3, [2, 4, 4]) else rng.choice(([stride] * 3, [1, stride, stride]))
    c, k = some(rng, 0.3), some(rng, 0.3)
    groups = 1 if rng.random() < 0.85 else c
    sides = [rng.choice((1, 2, 4, 5, 8, 9, 12, 13, 16, 20, 21, 28, 32, 40, 48, 64, 80, 96, 128)), *plane(rng)]
    return c, c if groups > 1 else k, sides, t, strides, [rng.choice((0, 1, 1, 1)) * (v // 2) for v in t], [1] * 3, groups, rng.choice(IMAGES[:12])


def upsampling(rng):
    """What is transposed: its filters are those of the pass that makes things smaller."""
    t, stride, pad = rng.choice(((2, 2, 0), (2, 2, 0), (4, 2, 1), (4, 2, 1), (3, 2, 1), (5, 2, 2), (6, 2, 2), (8, 4, 2), (16, 8, 4), (4, 4, 0), (4, 1, 0), (4, 1, 2)))
    dims = rng.choice((1, 2, 2, 2, 2, 3))
    sides = [rng.choice(LENGTHS) // stride * stride] if dims == 1 else [max(t, side_of(rng) // stride * stride) for _ in range(2)] if dims == 2 else [
        rng.choice((4, 8, 12, 16, 24, 32, 48, 64, 96, 128)) // stride * stride + t for _ in range(3)]
    return some(rng, 0.2), some(rng), sides, [t] * dims, [stride] * dims, [pad] * dims, [1] * dims, 1, rng.choice(IMAGES[:17])


def patches(rng):
    t = rng.choice((2, 4, 4, 7, 8, 14, 16, 16, 32))
    c, k = rng.choice((1, 3, 3, 3, 4, 16, 64, 96, 128, 192, 256, 384)), rng.choice((64, 96, 128, 192, 256, 384, 512, 768, 1024, 1152, 1280, 1408))
    return c, k, [t * rng.choice((4, 7, 8, 14, 16, 24, 32)) for _ in range(2)], [t] * 2, [t] * 2, [0] * 2, [1] * 2, 1, rng.choice(IMAGES)


def squares(rng):
    """Whose filters transforms could take."""
    t, c, k = rng.choice((3, 3, 3, 5, 5, 7, 9, 11)), some(rng, 0.3), some(rng, 0.3)
    groups = 1 if rng.random() < 0.8 else rng.choice([g for g in (2, 3, 4, 6, 8, 16, 32) if c % g == k % g == 0] or [1])
    return c, k, plane(rng), [t] * 2, [1] * 2, [rng.choice((t // 2, t // 2, 0))] * 2, [1] * 2, groups, rng.choice((*IMAGES, 256, 512))


def lines(rng):
    t = rng.choice(([1, 7], [7, 1], [1, 3], [3, 1], [1, 5], [5, 1], [1, 11], [11, 1], [1, 21], [21, 1], [1, 9], [9, 1]))
    c, k = some(rng), some(rng)
    groups = 1 if rng.random() < 0.7 else c
    return c, c if groups > 1 else k, plane(rng), t, [1] * 2, [v // 2 for v in t], [1] * 2, groups, rng.choice(IMAGES)


def points(rng):
    dims = rng.choice((1, 2, 2, 2, 3))
    sides = [rng.choice(LENGTHS)] if dims == 1 else [side_of(rng) for _ in range(2)] if dims == 2 else [rng.choice((2, 4, 8, 16, 32)), *plane(rng)]
    if dims == 2 and rng.random() < 0.15:
        sides = [1, 1]
    stride = rng.choice((1, 1, 1, 1, 2))
    return some(rng, 0.25), some(rng, 0.25), sides, [1] * dims, [stride] * dims, [0] * dims, [1] * dims, 1, rng.choice(IMAGES)


def plain(rng):
    t, stride = rng.choice((3, 3, 3, 3, 5, 7)), rng.choice((1, 1, 1, 2))
    pad = rng.choice((t // 2, t // 2, t // 2, 0, t - 1))
    return some(rng, 0.1), some(rng, 0.1), plane(rng), [t] * 2, [stride] * 2, [pad] * 2, [1] * 2, 1, rng.choice(IMAGES)


def any_of(rng, most):
    """As often in each power of two."""
    return int(2 ** rng.uniform(0, math.log2(most)))


def any_squares(rng):
    """Widths, sides and numbers of images of no list: what lies between those of a list is not known from it."""
    t, groups, h = rng.choice((3, 3, 3, 5, 7, 9, 11)), 1 if rng.random() < 0.85 else rng.choice((2, 3, 4, 6, 8, 16)), any_of(rng, 640)
    c, k = (any_of(rng, 1024 // groups) * groups for _ in range(2))
    return c, k, [h, h if rng.random() < 0.5 else any_of(rng, 640)], [t] * 2, [1] * 2, [rng.choice((t // 2, t // 2, t // 2, 0, t - 1))] * 2, [1] * 2, groups, any_of(rng, 1024)


def any_points(rng):
    h, c, k = any_of(rng, 640), any_of(rng, 4096), any_of(rng, 4096)
    sides = rng.choice(([h, h], [h, any_of(rng, 640)], [1, any_of(rng, 30000)]))
    return c, k, sides, [1] * 2, [1] * 2, [0] * 2, [1] * 2, 1, any_of(rng, 1024)


def whole_pictures(rng):
    """Second derivatives: channels are images, and the filters are as large as these."""
    t, h = rng.choice((1, 3, 3, 3, 5)), rng.choice((4, 7, 8, 14, 16, 28, 32, 56, 64, 128, 256, any_of(rng, 256)))
    n, k = (rng.choice((1, 3, 16, 32, 64, 128, 256, 512, any_of(rng, 1024))) for _ in range(2))
    w = h if rng.random() < 0.7 else any_of(rng, 256)
    return any_of(rng, 64), k, [h, w], [h, w], [1] * 2, [t // 2] * 2, [1] * 2, 1, n


FAMILIES = (few_channels, few_channels, optical_flow, optical_flow, sound, sound, spectrogram, single_channels, generator, grouped, dilated, volumes, volumes,
            upsampling, patches, lines, points, plain, plain)


def draw(rng, most_bytes, most_products, families=FAMILIES):
    """A shape that has a result and is not too large."""
    while True:
        c, k, sides, taps, strides, pads, dilations, groups, n = rng.choice(families)(rng)
        out = [(side + 2 * p - d * (t - 1) - 1) // step + 1 for side, p, d, t, step in zip(sides, pads, dilations, taps, strides)]
        if min(out) < 1 or c % groups or k % groups:
            continue
        size, products = n * max(c * math.prod(sides), k * math.prod(out)), n * k * c // groups * math.prod(out) * math.prod(taps)
        if size * 4 <= most_bytes and products <= most_products:
            return c, k, sides, taps, strides, pads, dilations, groups, n


def text_of(c, k, sides, taps, strides, pads, dilations, groups, n):
    each = ("x".join(map(str, v)) if len(set(v)) > 1 else v[0] for v in (strides, pads, dilations))
    return " ".join(map(str, (c, k, *sides, *taps, *each, groups, n)))


def layout_of(rng, dims):
    return rng.choice((("ncl",), ("nchw", "nhwc"), ("ncdhw", "ndhwc"))[dims - 1])


def questions(seed, count, *families):
    rng, seen = random.Random(seed), {}
    families = [globals()[name] for name in families] or FAMILIES
    while len(seen) < count:
        shape = draw(rng, 12 << 30, 1 << 60, families)
        layout = layout_of(rng, len(shape[2]))
        if layout == "ncl":  # a line of points is a picture of one row, as PyTorch asks
            c, k, sides, taps, strides, pads, dilations, groups, n = shape
            shape, layout = (c, k, [1, *sides], [1, *taps], [1, *strides], [0, *pads], [1, *dilations], groups, n), rng.choice(("nchw", "nchw", "nhwc"))
        seen["%s %s %s %s" % (rng.choice(("forward", "data", "filter", "filter")), rng.choice(("fp32", "fp16", "bf16")), layout, text_of(*shape))] = 1
    print(*seen, sep="\n")


def shapes(seed, count):
    rng, seen = random.Random(seed), {}
    while len(seen) < count:
        shape = draw(rng, 1 << 30, 1 << 39)
        kind = "transposed" if rng.random() < 0.15 and max(shape[6]) == 1 else "plain"
        seen["%s %s %s %s" % (rng.choice(("tf32", "fp32", "fp16", "bf16")), layout_of(rng, len(shape[2])), kind, text_of(*shape))] = 1
    print(*seen, sep="\n")


def kept_aside(text):
    """A quarter of the shapes, with all their types and layouts, judges and is never fitted."""
    return hashlib.md5(" ".join(text.split()[3:]).encode()).digest()[0] % 4 == 0


def parse(line):
    type_name, layout, kind, *numbers = line.split()
    dims = {"ncl": 1, "nchw": 2, "nhwc": 2, "ncdhw": 3, "ndhwc": 3}[layout]
    c, k, *numbers = numbers
    sides, taps = [int(v) for v in numbers[:dims]], [int(v) for v in numbers[dims:2 * dims]]
    each = [[int(p) for p in v.split("x")] * (1 if "x" in v else dims) for v in numbers[2 * dims:2 * dims + 3]]
    groups, n = map(int, numbers[2 * dims + 3:])
    return type_name, layout, kind == "transposed", int(c), int(k), sides, taps, *each, groups, n


def beside(torch, run):
    """Bytes requested beside what is returned, once the plan is made."""
    run()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    kept = run()
    return torch.cuda.memory_stats()["requested_bytes.all.peak"] - before - sum(t.numel() * t.element_size() for t in kept if t is not None)


def measure_one(torch, line, say):
    type_name, layout, transposed, c, k, sides, taps, strides, pads, dilations, groups, n = parse(line)
    torch.backends.cudnn.allow_tf32 = type_name != "fp32"
    form = {"nhwc": torch.channels_last, "ndhwc": torch.channels_last_3d}.get(layout, torch.contiguous_format)
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(type_name, torch.float32)

    def tensor(*lengths):
        return torch.empty(*lengths, device="cuda", dtype=kind, memory_format=form)
    out = [(side + 2 * p - d * (t - 1) - 1) // step + 1 for side, p, d, t, step in zip(sides, pads, dilations, taps, strides)]
    large, small, w = tensor(n, c, *sides), tensor(n, k, *out), tensor(k, c // groups, *taps)
    x, g = (small, large) if transposed else (large, small)
    rest = [(side + 2 * p - d * (t - 1) - 1) % step if transposed else 0 for side, p, d, t, step in zip(sides, pads, dilations, taps, strides)]
    args = [strides, pads, dilations, transposed, rest, groups]
    say("forward", beside(torch, lambda: [torch.ops.aten.convolution(x, w, None, *args)]))
    say("data", beside(torch, lambda: torch.ops.aten.convolution_backward(g, x, w, None, *args, [True, False, False])))
    say("filter", beside(torch, lambda: torch.ops.aten.convolution_backward(g, x, w, None, *args, [False, True, False])))


def measure(path, out_path, part, parts, seconds):
    import torch
    end = time.monotonic() + seconds
    torch.backends.cudnn.benchmark = False
    with open(path) as f, open(out_path, "w") as out:
        for line in f.read().splitlines()[part::parts]:
            if time.monotonic() > end:
                print("stopped before", line, file=sys.stderr)
                break
            try:
                measure_one(torch, line, lambda operation, size: print(line, operation, size, sep=",", file=out, flush=True))
            except RuntimeError as error:
                print(line, "error", str(error).splitlines()[0].replace(",", ";")[:80], sep=",", file=out, flush=True)
            if torch.cuda.memory_reserved() > 20 << 30:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "measure":
        measure(*arguments[:2], int(arguments[2]), int(arguments[3]), float(arguments[4]))
    else:
        (questions if command == "draw" else shapes)(*map(int, arguments[:2]), *arguments[2:])
