# SPDX-License-Identifier: Apache-2.0
"""FFT and Winograd convolutions, which cuDNN does not propose without a card: their workspaces, and
when a card prefers them.

`winograd` and `fourier` equal 12,167 of 12,269 sizes that an H200 proposed (cuDNN 9.19); the
largest ones are planned in parts of their images. cufrag_trees.csv, grown by
scripts/cudnn/tables.py, decides which one is used: first ("transform"), and without tensor cores
("alone").
"""
import math

from cufrag_trees import DATA, FILTER, FORWARD, key_of, order_of, up

TOGETHER = 8  # groups


def transforms(q, folded):
    """Bytes of a 2-D convolution by FFT in single precision, if cudnn.benchmark tries it, else 0.
    folded: does cuDNN propose to fold the strides of a data pass?"""
    (x, w), stride, pad = (q.x[0], q.w[0]), max(q.strides), max(q.pads)
    if q.data_type or q.dims != 4 or x[1] != w[1] or max(q.dilations) > 1 or w[2] != w[3] or w[2] > 32:
        return 0
    if q.operation == DATA:
        return fourier(q) if w[2] > 1 and (stride == 1 or folded) else 0
    if stride > 1 or side_of_planes(q) > 256 or q.operation == FORWARD and (pad >= w[2] or min(w[:2]) == 1):
        return 0
    return fourier(q)


def side_of_planes(q):
    side = 16
    while side < max(points + 2 * pad for points, pad in zip(q.x[0][2:], q.pads)):
        side *= 2
    return side


def planes(q, n, c, k):
    """Whole complex planes, and the result or filters."""
    side, taps, area = side_of_planes(q), math.prod(q.w[0][2:]), math.prod(q.y[0][2:])
    plane = 16 * side * (side // 2 + 1)
    if q.operation == FORWARD:
        return plane * max(n * c + c * k, n * k) + up(4 * c * k * taps, 16) * 16
    return plane * max(n * c + n * k, c * k) + up(4 * n * k * area, 16) * 16


def is_folded(q):
    """Strides in both dimensions are folded into channels first."""
    return min(q.strides) > 1


def tiles_of_32(q, n, c, k):
    """A data pass in tiles of 32 points, two of an image at a time; 0: the filter is larger."""
    sides, taps, copies = q.x[0][2:], q.w[0][2:], 0
    if is_folded(q):
        pads = [up(pad, step) for pad, step in zip(q.pads, q.strides)]
        taps = [up(t + new * step - old, step) for t, new, old, step in zip(taps, pads, q.pads, q.strides)]
        sides = [up(points, step) for points, step in zip(sides, q.strides)]
        results = [points + 2 * pad - t + 1 for points, pad, t in zip(sides, pads, taps)]
        c, k = up(math.prod(q.strides) * c, 8) * 8, up(k, 8) * 8
        copies = rounded((2 if q.data_type else 4) * (n * c * math.prod(sides) + c * k * math.prod(taps) + n * k * math.prod(results)))
    if max(taps) > 32:
        return 0
    tiles = math.prod(up(points, 32 - t + 1) for points, t in zip(sides, taps))
    return 32 * 17 * 8 * (c * k + n * min(2, tiles) * (c + k)) + copies


def rounded(size):
    return (size // 16 + 1) * 16


def is_last(q):
    """Does any tensor have channels last?"""
    return any(strides[1] == 1 and dims[1] > 1 and math.prod(dims[2:]) > 1 for dims, strides in (q.x, q.w, q.y))


def moved(q):
    """Bytes of tensors whose layout depends on the position of the channels."""
    tensors = [dims for dims in (q.x[0], q.y[0], q.w[0]) if math.prod(dims[2:]) > 1]
    return (2 if q.data_type else 4) * sum(math.prod(d) for d in tensors if d[1] > 1 or d is q.w[0])


def of_groups(q, size, sliced):
    """Eight groups at a time, each with its workspace and its share of the copies: all tensors if
    channels are last; sliced: images, if there are several."""
    groups, copied = q.x[0][1] // q.w[0][1], moved(q) if is_last(q) else 0
    if groups == 1:
        return size + (rounded(copied) if copied else 0)
    if sliced and not copied and q.x[0][0] > 1:
        copied = (2 if q.data_type else 4) * (math.prod(q.x[0]) + math.prod(q.y[0]))
    at_once = min(groups, TOGETHER)
    return at_once * (size + 16 * bool(copied)) + copied * at_once // groups


def winograd(q):
    """Bytes and tiles: 4 points a side (9 for filters of 5), with transforms of 6 (13)."""
    (n, *_), (k, c, taps, _), groups = q.x[0], q.w[0], q.x[0][1] // q.w[0][1]
    side, points = (4, 36) if taps == 3 else (9, 169)
    images = n if q.operation == FILTER and taps == 3 else up(n, 16) * 16
    tiles = math.prod(up(length, side) for length in (q.x if q.operation == DATA else q.y)[0][2:]) * images
    k //= groups
    return of_groups(q, 4 * points * (c + k) * tiles + up(4 * points * c * k, 16) * 16, False), tiles


def fourier(q):
    """Half precision is converted without a copy."""
    (n, *_), (k, c, *_), groups = q.x[0], q.w[0], q.x[0][1] // q.w[0][1]
    if q.operation == DATA:
        size = tiles_of_32(q, n, c, k // groups)
        return size * min(groups, TOGETHER) if is_folded(q) or not size else of_groups(q, size, True)
    size = planes(q, n, c, k // groups)
    return size + 16 if q.data_type and groups == 1 and is_last(q) else of_groups(q, size, True)


# engines that a card prefers if cuDNN without one proposes another
WINOGRAD = (6, 7, 17)  # the others use FFT
ENGINES = {("filter", "fp32"): (17, 18), ("filter", "half"): (17,), ("data", "fp32"): (50,),
           ("data", "half"): (7, 50), ("forward", "fp32"): (3,), ("forward", "half"): (6,)}


def bytes_of(q, number):
    """Workspace of engine `number`; 0: it does not support the filters."""
    if number in WINOGRAD:
        return winograd(q)[0] if q.w[0][2] == q.w[0][3] in (3, 5) else 0
    return fourier(q) if q.operation == DATA or side_of_planes(q) <= 256 else 0


def is_candidate(q):
    groups = q.x[0][1] // q.w[0][1]
    return q.dims == 4 and max(*q.strides, *q.dilations) == 1 and q.data_type in (0, 2, 9) and (q.w[0][1] > 1 or groups == 1)


def features(q, engines, knobs):
    """Features for the trees; engines and knobs as in cufrag_trees.py."""
    (n, channels, h, w), (filters, c, taps, across), area = q.x[0], q.w[0], math.prod(q.y[0][2:])
    groups = channels // c
    k, (bytes_of_tiles, tiles) = filters // groups, winograd(q)
    first = next(iter(engines.values()))
    found = [n, channels, filters, groups, c, k, h, w, taps, q.pads[1], q.data_type == 2, first,
             *(knobs.get(kind, -1) for kind in (0, 2, 5, 13, 14, 25, 27, 28)), bytes_of_tiles,
             fourier(q), tiles, n * area, n * area * c * k, tiles * c * k, c * k, 64 * c // k,
             n * h * w * channels, 64 * tiles * (4 if taps == 3 else 9) ** 2 // (n * area),
             min(c, k), max(c, k), c % 32, k % 32, min(h, w), area,
             64 * n * area // (c * k * taps * across), is_last(q), across, side_of_planes(q),
             n * c, n * k, max(h, w)]
    return found + costs(q, n, c, k, groups) + order_of(engines)


def costs(q, n, c, k, groups):
    """Of the product without transforms: sides, tiles, multiplications; and how many of these are
    saved by planes and by tiles of 32 points."""
    (h, w), (taps, across), area = q.x[0][2:], q.w[0][2:], math.prod(q.y[0][2:])
    filters, products = taps * across, n * area * c * k * taps * across * groups
    sides = {FORWARD: (n * area, k, c * filters), DATA: (n * h * w, c, k * filters), FILTER: (k, c * filters, n * area)}[q.operation]
    plane, of_planes = side_of_planes(q) ** 2, n * c * k * groups
    tiles = up(h, 33 - taps) * up(w, 33 - across) if max(taps, across) < 32 else 0
    moves = (n * c * h * w + n * k * area + c * k * filters) * groups
    return [*sides, up(sides[0], 128) * up(sides[1], 128) * groups, products,
            64 * products // (plane * of_planes), 64 * products // max(1, 1024 * tiles * of_planes),
            64 * of_planes // ((n * c + n * k + c * k) * groups), products // moves, filters,
            q.pads[0], 64 * n // (c + k), 64 * plane // area, 64 * sides[2] // sides[0],
            64 * sides[2] // sides[1], 64 * sides[0] // sides[1], tiles, moves, c % 4, k % 4]


def taken(trees, q, engines, knobs, purpose="transform"):
    """Bytes of the transform that a card prefers ("alone": without tensor cores); None: the plan
    proposed without a card."""
    key, best = key_of(q)[:2], (0, None)
    if key not in ENGINES:
        return None
    found = features(q, engines, knobs)
    for number in ENGINES[key]:
        size = bytes_of(q, number)
        sure = trees.sure(purpose, (*key, str(number)), found) if size else 0
        best = (sure, size) if sure > best[0] else best
    return best[1]
