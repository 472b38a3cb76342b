# SPDX-License-Identifier: Apache-2.0
"""Convolutions by Fourier's and Winograd's transforms, which cuDNN does not propose without a card: what they take, and when a card takes
them first.

Sizes: `transforms` equals 397 of 400 of an H100 (cuDNN 9.19), to be proposed in nine of ten that could be. `winograd` and `fourier` equal
1,143 of the 1,151 plans of this kind that an H200 took first, of 41,617 (channels first, strides of 1). Whether it does is
in cufrag_trees.csv, grown by scripts/lab/conv_trees.py.
"""
import copy
import math

from cufrag_trees import DATA, FILTER, FORWARD, key_of, up

TOGETHER = 8  # groups


def transforms(q, folded):
    """Bytes of a convolution of planes by Fourier transforms in single precision; 0: cuDNN has none. folded: what rearranging a data pass
    of stride 2 and more takes."""
    (x, w, y), stride, pad = (q.x[0], q.w[0], q.y[0]), max(q.strides), max(q.pads)
    if q.data_type or q.dims != 4 or x[1] != w[1] or max(q.dilations) > 1 or w[2] != w[3] or w[2] > 32:
        return 0
    n, c, k, taps = x[0], w[1], w[0], w[2] * w[3]
    if q.operation == DATA:
        return tiles_of_32(q, n, c, k, folded) if taps > 1 and (stride == 1 or folded) else 0
    side = 16
    while side < max(x[2:]) + 2 * pad:
        side *= 2
    if stride > 1 or side > 256 or q.operation == FORWARD and (pad >= w[2] or min(c, k) == 1):
        return 0
    plane = 16 * side * (side // 2 + 1)  # complex numbers, twice
    if q.operation == FORWARD:
        return plane * max(n * c + c * k, n * k) + up(4 * c * k * taps, 16) * 16 + channels_first(q)
    return plane * max(n * c + n * k, c * k) + up(4 * n * k * y[2] * y[3], 16) * 16 + channels_first(q)


def tiles_of_32(q, n, c, k, folded):
    """A data pass, in tiles of 32 points, two of an image at a time. With strides, filters and outputs are folded into channels first."""
    (w, y), stride, copies = (q.w[0], q.y[0]), q.strides[0], channels_first(q)
    sides, taps = q.x[0][2:], w[2]
    if stride > 1:
        taps, copies = up(taps, stride), folded
        sides = [points + taps - 1 for points in y[2:]]
        c, k = up(stride * stride * c, 8) * 8, up(k, 8) * 8
    step = 32 - taps + 1
    at_once = n * min(2, up(sides[0], step) * up(sides[1], step))
    return 32 * 17 * 8 * (c * k + at_once * (c + k)) + copies


def channels_first(q):
    """Copies of tensors that have their channels last."""
    item, moved = 4 if q.data_type == 0 else 2, 0
    if all(strides[1] != 1 or dims[1] == 1 or math.prod(dims[2:]) == 1 for dims, strides in (q.x, q.w, q.y)):
        return 0
    for dims, strides in (q.x, q.w, q.y):
        if dims[1] > 1 and math.prod(dims[2:]) > 1:
            moved += item * math.prod(dims)
    return (moved // 16 + 1) * 16


def winograd(q):
    """Bytes and tiles: of 4 points a side (9 for filters of 5), whose transforms are of 6 (13)."""
    (n, *_), (k, c, taps, _), groups = q.x[0], q.w[0], q.x[0][1] // q.w[0][1]
    side, points = (4, 36) if taps == 3 else (9, 169)
    images = n if q.operation == FILTER and taps == 3 else up(n, 16) * 16
    tiles = math.prod(up(length, side) for length in (q.x if q.operation == DATA else q.y)[0][2:]) * images
    k //= groups
    return 4 * points * min(groups, TOGETHER) * ((c + k) * tiles + c * k), tiles


def fourier(q):
    """As `transforms`, also of groups, and of half precision, which is converted."""
    (n, _, *sides), (k, c, *taps), groups = q.x[0], q.w[0], q.x[0][1] // q.w[0][1]
    one, item = copy.copy(q), 2 if q.data_type else 4
    one.data_type, one.x, one.w, one.y = 0, ([n, c, *sides], q.x[1]), ([k // groups, c, *taps], q.w[1]), ([n, k // groups, *q.y[0][2:]], q.y[1])
    size, at_once = transforms(one, 0), min(groups, TOGETHER)
    if groups == 1 or not size:
        return size
    copies = item * n * (groups * c * math.prod(sides) + k * math.prod(q.y[0][2:]))
    return at_once * (size + 16) + copies * at_once // groups


# engines that a card takes first where cuDNN without one proposes another
WINOGRAD = (6, 7, 17)  # the others are Fourier's
ENGINES = {("filter", "fp32"): (17, 18), ("filter", "half"): (17,), ("data", "fp32"): (50,), ("data", "half"): (7, 50), ("forward", "half"): (6,)}


def bytes_of(q, number):
    """What engine `number` takes; 0: it does not have such filters."""
    if number in WINOGRAD:
        return winograd(q)[0] if q.w[0][2] in (3, 5) else 0
    return fourier(q)


def is_candidate(q):
    (_, c, taps, across), groups = q.w[0][:2] + q.w[0][-2:], q.x[0][1] // q.w[0][1]
    if q.dims != 4 or taps != across or not 2 <= taps <= 7 or max(*q.strides, *q.dilations) > 1 or q.data_type not in (0, 2, 9):
        return False
    return (c > 1 or groups == 1) and key_of(q)[2] == "nchw"


def features(q, engine, knobs):
    """Numbers that the trees look at. engine, knobs: of the plan that cuDNN proposes without a card, knobs by their numbers."""
    (n, channels, h, w), (filters, c, taps, _), area = q.x[0], q.w[0], math.prod(q.y[0][2:])
    groups = channels // c
    k, (bytes_of_tiles, tiles) = filters // groups, winograd(q)
    return [n, channels, filters, groups, c, k, h, w, taps, q.pads[1], q.data_type == 2, engine,
            *(knobs.get(kind, -1) for kind in (0, 2, 5, 13, 14, 25, 27, 28)), bytes_of_tiles, fourier(q), tiles, n * area, n * area * c * k,
            tiles * c * k, c * k, c / k, n * h * w * channels, tiles * (4 if taps == 3 else 9) ** 2 / (n * area), min(c, k), max(c, k), c % 32,
            k % 32, min(h, w), area, n * area / (c * k * taps * taps)]


def taken(trees, q, engine, knobs):
    """Bytes of the transform that a card takes first; None: it takes what is proposed without one."""
    key, best = key_of(q)[:2], (0, None)
    if key not in ENGINES:
        return None
    found = features(q, engine, knobs)
    for number in ENGINES[key]:
        size = bytes_of(q, number)
        sure = sum(map(float, trees.ask("transform", (*key, str(number)), found))) if size else 0
        best = (sure, size) if sure > best[0] else best
    return best[1]
