# SPDX-License-Identifier: Apache-2.0
"""Convolutions to ask a card's cuDNN about, drawn from a seed: the same ones on every machine.

First come the layers that most nets of nets.csv have. Of the others, 37 % are layers of these nets
with other batches and picture sizes, and 15 % are of families that they lack (optical flow, sound,
volumes, ...). The remaining 48 % are what is hardest to tell, for the trees to grow from: points,
mostly with channels last, and square filters of any width, which transforms may take."""
import math
import os
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
FORWARD, FILTER, DATA = 10, 11, 12  # CUDNN_BACKEND_OPERATION_CONVOLUTION_..._DESCRIPTOR
FLOAT, HALF, BFLOAT = 0, 2, 9  # cudnnDataType_t
COMMON = 150  # layers
MOST_BYTES = 12 << 30  # of one tensor, in single precision
IMAGES = (1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 10, 12, 16, 16, 20, 24, 32, 32, 48, 64, 64, 96, 128, 128, 256)
FEW = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
WIDE = (16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 192, 224, 240, 256, 288, 320, 384, 448, 512, 576, 640, 672, 768,
        960, 1024, 1280, 1536, 2048)
SIDES = (4, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
LENGTHS = (24, 49, 75, 99, 150, 187, 250, 300, 375, 400, 499, 500, 600, 750, 799, 1000, 1500, 1599, 2000, 2400, 3000, 3199, 4000, 4800,
           6000, 8000, 8192, 12000, 16000, 24000)
RESOLUTIONS = (96, 112, 128, 160, 192, 256, 288, 320, 384, 448, 512, 640)  # of pictures; those of nets are 224 wide
# type and channels last: as often as programs have them (channels first is PyTorch's default), and where it is hard
TYPES = 6 * ((FLOAT, False),) + 3 * ((HALF, False), (BFLOAT, False)) + ((FLOAT, True), (HALF, True), (BFLOAT, True), (BFLOAT, True))
POINT_TYPES = 2 * ((FLOAT, True), (HALF, True), (BFLOAT, True)) + ((FLOAT, False), (HALF, False), (BFLOAT, False))
SQUARE_TYPES = 4 * ((FLOAT, False),) + 2 * ((FLOAT, True), (HALF, False), (BFLOAT, False)) + ((HALF, True), (BFLOAT, True))


class Dice:
    """splitmix64: no version of Python may draw otherwise."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (1 << 64) - 1
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
        return (z ^ z >> 31) % n

    def of(self, *items):
        return items[self.below(len(items))]

    def percent(self, share):
        return self.below(100) < share

    def up_to(self, most):
        """As often in each power of two."""
        while True:
            least = 1 << self.below(most.bit_length())
            value = least + self.below(least)
            if value <= most:
                return value

    def side(self):
        side = self.of(*SIDES)
        return max(1, side + self.of(-3, -2, -1, 1, 2, 3, 5)) if self.percent(35) else side

    def plane(self):
        side = self.side()
        return [side, side if self.percent(60) else self.side()]

    def channels(self, few=15):
        return self.of(*FEW) if self.percent(few) else self.of(*WIDE)


# ---- families: each gives c, k, sides, taps, strides, pads, dilations, groups and images

def few_channels(d):
    t = d.of(1, 2, 3, 3, 3, 4, 5, 7, 9)
    c, k = d.of((d.channels(100), d.channels(100)), (d.channels(100), d.channels()), (d.channels(), d.channels(100)))
    return c, k, d.plane(), [t] * 2, [d.of(1, 1, 1, 2)] * 2, [d.of(0, t // 2, t // 2)] * 2, [1] * 2, 1, d.of(*IMAGES)


def optical_flow(d):
    h, w = d.of((440, 1024), (368, 496), (368, 768), (400, 720), (520, 960), (256, 256), (384, 512), (320, 448))
    down, t = d.of(1, 2, 4, 8, 8, 8), d.of([1, 5], [5, 1], [3, 3], [3, 3], [1, 1], [7, 7])
    c = d.of(2, 3, 8, 16, 24, 32, 64, 82, 96, 126, 128, 146, 160, 192, 242, 256, 324, 384)
    k = d.of(2, 8, 16, 24, 32, 64, 80, 82, 96, 124, 126, 128, 192, 256, 576)
    return c, k, [h // down, w // down], t, [d.of(1, 1, 1, 2)] * 2, [v // 2 for v in t], [1] * 2, 1, d.of(*IMAGES[:14])


def sound(d):
    t, stride = d.of((7, 1), (3, 1), (1, 1), (4, 2), (8, 4), (10, 5), (16, 8), (5, 1), (9, 1), (11, 1), (15, 1), (31, 1), (41, 4), (2, 2))
    length = d.of(*LENGTHS) + d.of(0, 0, 0, 1, 2, 3, 6)
    dilation = d.of(1, 1, 1, 2, 3, 4, 5, 9, 16, 27) if stride == 1 and t < 16 else 1
    pad = d.of(0, t // 2 * dilation, (t - 1) * dilation)
    c, k = d.channels(20), d.channels(20)
    groups = 1 if d.percent(80) else math.gcd(c, k) if d.percent(60) else math.gcd(c, k, 4)
    return c, k, [1, length], [1, t], [1, stride], [0, pad], [1, dilation], groups, d.of(*IMAGES)


def spectrogram(d):
    t, strides, dilations = d.of(([3, 9], [1, 2], [d.of(1, 2, 4), 1]), ([3, 9], [1, 1], [1, 1]), ([3, 3], [1, 1], [1, 1]),
                                 ([5, 1], [3, 1], [1, 1]), ([5, 1], [1, 1], [1, 1]), ([3, 8], [1, 4], [1, 1]), ([8, 1], [4, 1], [1, 1]),
                                 ([3, 1], [1, 1], [1, 1]), ([5, 5], [2, 2], [1, 1]))
    c, k = d.of((1, 32), (2, 32), (32, 32), (32, 128), (128, 512), (512, 1024), (1024, 1024), (32, 1), (1024, 1), (2, 48), (48, 96),
                (96, 192))
    sides = [d.of(*LENGTHS[:16]) + d.of(0, 1), d.of(2, 3, 5, 7, 11, 33, 65, 80, 129, 257, 513)]
    return c, k, sides, t, strides, [(a - 1) * b // 2 for a, b in zip(t, dilations)], dilations, 1, d.of(*IMAGES)


def depthwise(d):
    t, c = d.of(3, 3, 5, 5, 7, 7, 9, 13, 31), d.of(*WIDE, 104, 152, 176, 200, 304, 480, 528, 816, 1056, 1152, 1344, 1632, 2304, 3072)
    pad, k = d.of(t // 2, t // 2, 0), c * d.of(1, 1, 1, 1, 2)
    return c, k, d.plane(), [t] * 2, [d.of(1, 1, 2)] * 2, [pad] * 2, [d.of(1, 1, 1, 2)] * 2, c, d.of(*IMAGES)


def generator(d):
    """Modulated filters: images are groups of one image."""
    n, side, c = d.of(1, 2, 3, 4, 6, 8, 12, 16), d.of(4, 8, 16, 32, 64, 128, 256, 512), d.of(32, 64, 128, 256, 512)
    if d.percent(30):  # a blur of each channel
        side, pad = side + d.of(0, 1), d.of(1, 2, 0)
        return n * c, n * c, [side] * 2, [4] * 2, [d.of(1, 1, 2)] * 2, [pad] * 2, [1] * 2, n * c, 1
    t, k = d.of(1, 3, 3, 3), d.of(3, 32, 64, 128, 256, 512)
    stride = d.of(1, 1, 2) if t == 3 else 1
    side = side * stride + stride - 1
    return n * c, n * k, [side] * 2, [t] * 2, [stride] * 2, [t // 2 if stride == 1 else 0] * 2, [1] * 2, n, 1


def grouped(d):
    width = d.of(4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 112, 120, 128, 232, 264)
    groups, t = d.of(2, 2, 3, 4, 4, 5, 6, 8, 12, 16, 22, 32, 64), d.of(1, 3, 3, 3, 5)
    c = width * groups
    k = c if d.percent(80) else groups * d.of(4, 8, 16, 32, 64)
    return c, k, d.plane(), [t] * 2, [d.of(1, 1, 2)] * 2, [t // 2] * 2, [1] * 2, groups, d.of(*IMAGES)


def dilated(d):
    by = d.of(2, 2, 3, 4, 6, 8, 12, 18, 24, 36)
    pad = d.of(by, by, by, 0, 1)
    return d.channels(), d.channels(), d.plane(), [3] * 2, [1] * 2, [pad] * 2, [by] * 2, 1, d.of(*IMAGES[:16])


def volumes(d):
    t = d.of([3] * 3, [3] * 3, [3] * 3, [1] * 3, [2] * 3, [4] * 3, [5] * 3, [7] * 3, [1, 3, 3], [3, 1, 1], [1, 7, 7], [3, 7, 7],
             [3, 5, 5], [2, 4, 4])
    stride = d.of(1, 1, 1, 2)
    strides = t if t in ([2] * 3, [2, 4, 4]) else d.of([stride] * 3, [1, stride, stride])
    c, k, pad = d.channels(30), d.channels(30), d.of(0, 1, 1, 1)
    groups = 1 if d.percent(85) else c
    sides = [d.of(1, 2, 4, 5, 8, 9, 12, 13, 16, 20, 21, 28, 32, 40, 48, 64, 80, 96, 128), *d.plane()]
    return c, c if groups > 1 else k, sides, t, strides, [pad * (v // 2) for v in t], [1] * 3, groups, d.of(*IMAGES[:12])


def upsampling(d):
    """What is transposed: its filters are those of the pass that makes things smaller."""
    t, stride, pad = d.of((2, 2, 0), (2, 2, 0), (4, 2, 1), (4, 2, 1), (3, 2, 1), (5, 2, 2), (6, 2, 2), (8, 4, 2), (16, 8, 4), (4, 4, 0),
                          (4, 1, 0), (4, 1, 2))
    c, k, n, dims = d.channels(20), d.channels(), d.of(*IMAGES[:17]), d.of(1, 2, 2, 2, 2, 3)
    if dims == 1:
        length = d.of(*LENGTHS) // stride * stride
        return c, k, [1, length], [1, t], [1, stride], [0, pad], [1] * 2, 1, n
    sides = [max(t, d.side() // stride * stride) for _ in range(2)] if dims == 2 else [
        d.of(4, 8, 12, 16, 24, 32, 48, 64, 96, 128) // stride * stride + t for _ in range(3)]
    return c, k, sides, [t] * dims, [stride] * dims, [pad] * dims, [1] * dims, 1, n


def patches(d):
    t, c = d.of(2, 4, 4, 7, 8, 14, 16, 16, 32), d.of(1, 3, 3, 3, 4, 16, 64, 96, 128, 192, 256, 384)
    k = d.of(64, 96, 128, 192, 256, 384, 512, 768, 1024, 1152, 1280, 1408)
    return c, k, [t * d.of(4, 7, 8, 14, 16, 24, 32) for _ in range(2)], [t] * 2, [t] * 2, [0] * 2, [1] * 2, 1, d.of(*IMAGES)


def lines(d):
    t, c, k = d.of(3, 5, 7, 9, 11, 21), d.channels(), d.channels()
    t, groups = d.of([1, t], [t, 1]), 1 if d.percent(70) else c
    return c, c if groups > 1 else k, d.plane(), t, [1] * 2, [v // 2 for v in t], [1] * 2, groups, d.of(*IMAGES)


def points(d):
    dims = d.of(1, 2, 2, 2, 3)
    sides = [1, d.of(*LENGTHS)] if dims == 1 else d.plane() if dims == 2 else [d.of(2, 4, 8, 16, 32), *d.plane()]
    sides = [1, 1] if dims == 2 and d.percent(15) else sides
    stride, dims = d.of(1, 1, 1, 1, 2), len(sides)
    return d.channels(25), d.channels(25), sides, [1] * dims, [stride] * dims, [0] * dims, [1] * dims, 1, d.of(*IMAGES)


def plain(d):
    t = d.of(3, 3, 3, 3, 5, 7)
    pad = d.of(t // 2, t // 2, t // 2, 0, t - 1)
    return d.channels(10), d.channels(10), d.plane(), [t] * 2, [d.of(1, 1, 1, 2)] * 2, [pad] * 2, [1] * 2, 1, d.of(*IMAGES)


# ---- what is hard to tell

def any_points(d):
    """Widths, sides and batches of no list: what lies between those of a list is not known from it."""
    h, c, k = d.up_to(640), d.up_to(4096), d.up_to(4096)
    sides = d.of([h, h], [h, d.up_to(640)], [1, d.up_to(30000)])
    return c, k, sides, [1] * 2, [1] * 2, [0] * 2, [1] * 2, 1, d.up_to(1024)


def squares(d):
    """Whose filters transforms could take."""
    t, groups = d.of(3, 3, 3, 3, 5, 5, 7, 9, 11), 1 if d.percent(70) else d.of(2, 3, 4, 5, 6, 8, 12, 16, 22, 32)
    c, k = (d.channels(30) if d.percent(50) else d.up_to(1024) for _ in range(2))
    if groups > 1:
        c = d.of(4, 8, 16, 24, 32, 36, 40, 48, 64, 72, 80, d.up_to(128)) * groups
        k = c if d.percent(75) else d.of(4, 8, 16, 32, 64) * groups
    h = d.up_to(640)
    sides = d.plane() if d.percent(60) else [h, h if d.percent(50) else d.up_to(640)]
    n = d.of(*IMAGES) if d.percent(60) else d.up_to(1024)
    return c, k, sides, [t] * 2, [1] * 2, [d.of(t // 2, t // 2, t // 2, 0, t - 1)] * 2, [1] * 2, groups, n


def whole_pictures(d):
    """Second derivatives: channels are images, and the filters are as large as these."""
    t, h = d.of(1, 3, 3, 3, 5), d.of(4, 7, 8, 14, 16, 28, 32, 56, 64, 128, 256, d.up_to(256))
    n, k = (d.of(1, 3, 16, 32, 64, 128, 256, 512, d.up_to(1024)) for _ in range(2))
    w = h if d.percent(70) else d.up_to(256)
    return d.up_to(64), k, [h, w], [h, w], [1] * 2, [t // 2] * 2, [1] * 2, 1, n


FAMILIES = (few_channels, few_channels, optical_flow, optical_flow, sound, sound, spectrogram, depthwise, generator, grouped, dilated,
            volumes, volumes, upsampling, patches, lines, points, plain, plain)



class Nets:
    def __init__(self):
        with open(os.path.join(HERE, "nets.csv"), encoding="ascii") as f:
            self.layers = [tuple(map(int, line.split(","))) for line in f.read().splitlines()[1:]]
        self.widths = sorted({v for layer in self.layers for v in layer[:2]})

        self.points = [layer for layer in self.layers if layer[4:] == (1, 1, 0, 1, 1)]

    def layer(self, d, layers=None):
        c, k, h, w, t, stride, pad, dilation, groups = d.of(*(layers or self.layers))
        if t == groups == 1 and d.percent(30):
            c, k = d.of(*self.widths), d.of(*self.widths)
        if d.percent(55):
            to = d.of(*RESOLUTIONS)
            h, w = (max(1, (2 * side * to + 224) // 448) for side in (h, w))
        n = d.up_to(512) if d.percent(25) else d.of(*IMAGES)
        return c, k, [h, w], [t] * 2, [stride] * 2, [pad] * 2, [dilation] * 2, groups, n


def results_of(sides, taps, strides, pads, dilations):
    return [(side + 2 * p - by * (t - 1) - 1) // step + 1 for side, p, by, t, step in zip(sides, pads, dilations, taps, strides)]


def drawn(d, nets):
    """Whether it is a hard one, types to choose from, and the shape."""
    kind = d.below(100)
    if kind < 52:
        return False, TYPES, nets.layer(d) if kind < 37 else d.of(*FAMILIES)(d)
    if kind < 70:
        return True, POINT_TYPES, nets.layer(d, nets.points) if kind < 64 else any_points(d)
    return True, SQUARE_TYPES, squares(d) if kind < 97 else whole_pictures(d)


def draw(d, nets):
    """Whether it is a hard one, and (operation, type, channels last, shape) of one that has a result and is not too large."""
    while True:
        is_hard, types, shape = drawn(d, nets)
        c, k, sides, *how, groups, n = shape
        out = results_of(sides, *how)
        if min(out) < 1 or c % groups or k % groups or n * max(c * math.prod(sides), k * math.prod(out)) * 4 > MOST_BYTES:
            continue
        operations = (FORWARD, DATA, FILTER, FILTER) if is_hard else (FORWARD, DATA, FILTER)
        return is_hard, (d.of(*operations), *d.of(*types), *shape)


def tensor(a, b, points, last):
    """Its dimensions, then its strides."""
    dims, steps, step = [a, b, *points], [0] * (2 + len(points)), 1
    for at in [1, *range(len(dims) - 1, 1, -1), 0] if last else range(len(dims) - 1, -1, -1):
        steps[at] = step
        step *= dims[at]
    return [*dims, *steps]


def numbers_of(operation, data_type, last, c, k, sides, taps, strides, pads, dilations, groups, n):
    """As cufrag_planner.py is asked."""
    out = results_of(sides, taps, strides, pads, dilations)
    return [operation, data_type, 2 + len(sides), *tensor(n, c, sides, last), *tensor(k, c // groups, taps, last),
            *tensor(n, k, out, last), *pads, *strides, *dilations]


def common(nets):
    """The layers that most nets have, as they are."""
    for c, k, h, w, t, stride, pad, dilation, groups in nets.layers[:COMMON]:
        for n in (8, 16, 32, 64, 128, 256):
            for data_type, last in dict.fromkeys(TYPES):
                for operation in (FORWARD, FILTER, DATA)[:2 if c < 5 else 3]:  # pictures need no gradient
                    if n * h * w * max(c, k) * 4 <= MOST_BYTES:
                        yield (operation, data_type, last, c, k, [h, w], [t] * 2, [stride] * 2, [pad] * 2, [dilation] * 2, groups, n)


def questions(seed, count):
    """{numbers: whether it is a hard one}, in a fixed order."""
    d, nets = Dice(seed), Nets()
    seen = dict.fromkeys((tuple(numbers_of(*q)) for q in common(nets)), False)
    while len(seen) < count:
        is_hard, question = draw(d, nets)
        seen.setdefault(tuple(numbers_of(*question)), is_hard)
    return dict(list(seen.items())[:count])


def is_aside(numbers):
    """One shape in eight, with all its operations, types and layouts: it judges the trees, which are not grown from it."""
    dims = numbers[2]
    shape = [*numbers[3:3 + dims], *numbers[3 + 2 * dims:3 + 3 * dims], *numbers[3 + 6 * dims:]]
    return zlib.crc32(" ".join(map(str, shape)).encode()) % 8 == 0
