# SPDX-License-Identifier: Apache-2.0
"""Plans of cuDNN as an H200 takes them, from those without a card.

Known is one release: that of cufrag_trees.csv (trees of decisions) and cufrag_workspaces.csv (plans
of a card for convolutions of common nets, for which the trees are wrong). scripts/cudnn/tables.py
makes both."""
import collections
import math
import os

import cufrag_transforms
from cufrag_trees import DATA, FORWARD, SMS, Trees, groups_of, is_point, up

HERE = os.path.dirname(os.path.abspath(__file__))
TENSOR_CORES = 1  # of a plan's kind
TILE, SPLIT, WORKSPACE, CLUSTER_M, CLUSTER_N = 2, 13, 25, 27, 28  # knobs
# sides of a tile by its knob, in kernels of CUTLASS 3: engines from 62 on
TILES = {0: (128, 128), 1: (128, 64), 3: (256, 128), 4: (256, 64), 5: (64, 64), 6: (128, 256),
         7: (64, 128), 9: (64, 256), 16: (256, 32), 18: (64, 192), 20: (256, 96)}
STREAM_K_FROM = 62
COUNTERS = 131  # bytes where there are more than two rounds of tiles
GROUPS_COUNTERS = 144  # the same where each group has them
PAIRS = 159  # bytes beside partial sums and their counters
# multiprocessors of an H200's 132 that clusters of each size filled (an H100: 102 by 6)
FILLED = {1: 132, 2: 132, 3: 117, 4: 120, 5: 110, 6: 108, 7: 105, 8: 120, 16: 112}

# size: bytes, without the partial sums of a stream-K kernel
Plan = collections.namedtuple("Plan", "kind engine knobs size")


class Known:
    def __init__(self, folder=HERE):
        self.trees, self.workspaces = Trees(folder + "/cufrag_trees.csv"), {}
        with open(os.path.join(folder, "cufrag_workspaces.csv"), encoding="ascii") as f:
            next(f)
            for line in f:
                question, first, without = line.split(",")
                self.workspaces[question] = int(first), int(without)

    def is_of(self, version):
        """Whether cuDNN of this version (91900) is of the release that is known."""
        major, minor = self.trees.release.split(".")[:2]
        return version // 100 == int(major) * 100 + int(minor)

    def on_card(self, q, plans, sms=SMS):
        """{kind: bytes}, in order of choice. plans: the first of each kind, in cuDNN's order."""
        found = self.left_out(q, plans, sms) if plans else {}
        for kind, plan in plans.items():
            if kind not in found:
                found[kind] = self.size_of(q, plan, sms)
        return self.corrected(q, found)

    def corrected(self, q, found):
        """As a card took it: the first plan, and the first without tensor cores (-1: as here)."""
        first, without = self.workspaces.get(text_of(q), (-1, -1))
        plain = next((kind for kind in found if not kind & TENSOR_CORES), None)
        if without >= 0 and plain is not None:
            found[plain] = without
        if first >= 0:
            found[next(iter(found))] = first
        return found

    def left_out(self, q, plans, sms):
        """Plans that a card takes and that are not proposed without one: before all others, and
        where the first one that is taken has tensor cores, in single precision without them."""
        engines, first, found = {plan.kind: plan.engine for plan in plans.values()}, next(iter(plans.values())), {}
        kind, knobs, transforms = first.kind, first.knobs, cufrag_transforms.is_candidate(q)
        if is_point(q):
            taken, size = TENSOR_CORES, self.trees.product(q, engines, knobs)
        else:
            taken, size = 0, cufrag_transforms.taken(self.trees, q, engines, knobs) if transforms else None
        if size is not None:
            kind, found = taken, {taken: size}
        if q.data_type == 0 and kind & TENSOR_CORES and transforms:
            size = cufrag_transforms.taken(self.trees, q, engines, knobs, "alone")
            if size is not None:
                found = {**(found or {kind: self.size_of(q, first, sms)}), 0: size}
        return found

    def size_of(self, q, plan, sms):
        """Parts are added in pairs, each with a counter; one more beyond two rounds of tiles."""
        if not has_tiles(plan):
            return plan.size
        (m, n), at_once = TILES[plan.knobs[TILE]], min(groups_of(q), cufrag_transforms.TOGETHER)
        counted = plan.size % 16 == COUNTERS % 16
        last, few, found = streamk(q, plan.knobs, sms, at_once if counted else 1)
        apart = 1 if counted else at_once  # groups that have a workspace each
        parts = self.trees.splits(q, found) if last and is_streamk(plan) else 0
        if parts:
            partial = 4 * m * n * last * parts + PAIRS + 4 * (last * pairs(parts) + (not few))
            return plan.size - COUNTERS * counted + (partial if apart == 1 else apart * (up(partial, 16) * 16 - GROUPS_COUNTERS))
        if few:
            return plan.size - (COUNTERS if counted else apart * GROUPS_COUNTERS if apart > 1 else 0)
        return plan.size


def text_of(q):
    """A convolution in cufrag_workspaces.csv."""
    return " ".join(map(str, (q.operation, q.data_type, int(q.x[1][1] == 1), *q.x[0], *q.w[0], *q.pads, *q.strides, *q.dilations)))


def has_tiles(plan):
    """Whether its tiles are known."""
    is_late = plan.engine >= STREAM_K_FROM and plan.knobs.get(TILE) in TILES
    return is_late and {WORKSPACE, CLUSTER_M} <= plan.knobs.keys()


def is_streamk(plan):
    """Of those whose partial sums depend on the card."""
    return has_tiles(plan) and plan.knobs[WORKSPACE] == 0


def pairs(parts):
    """Of so many partial sums, and of the sums of those."""
    return up(parts, 2) + pairs(up(parts, 2)) if parts > 1 else 0


def streamk(q, knobs, sms, at_once=1):
    """Tiles of the last round, whether there are two rounds or fewer, and what decides the splits
    of sums in the last round, which fill the card. at_once: groups whose tiles are of one round."""
    (tile_m, tile_n), m, n = TILES[knobs[TILE]], knobs[CLUSTER_M], knobs[CLUSTER_N]
    (x, w, y), taps = (q.x[0], q.w[0], q.y[0]), math.prod(q.w[0][2:])
    points, filters = [t[0] * math.prod(t[2:]) for t in (x, y)], w[0] // groups_of(q)
    if q.operation == FORWARD:
        rows, columns, depth = up(points[1], tile_m), up(filters, tile_n), taps * up(w[1], 32)
    elif q.operation == DATA:
        rows, columns, depth = up(points[0], tile_m), up(w[1], tile_n), taps * up(filters, 32)
    else:
        rows, columns, depth = up(filters, tile_m), up(w[1], tile_n) * taps, up(points[1], 32)
    cluster = m * n
    filled = max(1, FILLED.get(cluster, SMS) * sms // SMS // cluster * cluster)
    tiles = up(rows, m) * m * up(columns, n) * n * at_once
    last = tiles % filled
    each = filled // last if last else 0
    return last, tiles <= 2 * filled, [
        knobs[TILE], m, n, cluster, filled, tiles, last, 64 * filled // last if last else 0, depth,
        tiles // filled, depth * filled // last if last else 0, taps, x[1] // w[1], w[2] == 1,
        w[-1] == 1, each, last and filled % last == 0, x[1], w[0], math.prod(x[2:]), x[0],
        depth // max(1, each), q.data_type == 2, points[0], q.x[1][1] == 1, knobs.get(SPLIT, -1),
        len(x)]
