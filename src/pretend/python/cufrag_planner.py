# SPDX-License-Identifier: Apache-2.0
"""What the user's own cuDNN would take for a convolution: a process beside the program that is recorded.

    cufrag_planner.py LIBCUDNN              started by src/pretend/libraries/cudnn_plan.c; ends with its input

cuDNN 9.8 and newer plan for a card that is only described ("deviceless" in its documents). The first line of input is that
description, as JSON; each other one a convolution, in numbers:

    OPERATION TYPE DIMS  x: dims strides  w: dims strides  y: dims strides  padding strides dilation

and is answered by pairs "BYTES NOTES": of all plans that cuDNN proposes, in its order, the first of those that use tensor cores or not and
are deterministic or not (NOTES: bits 0 and 4). No pair: no plan. With "all" before it, the pairs are the largest of each kind: what
cudnn.benchmark takes to try them.

Three things are not as on a card:
* Kernels of the stream-K kind are planned for at most 18 multiprocessors. The partial sums that a whole card needs are
  counted here (`streamk`), by what an H200 took.
* Kernels of cuBLASLt are not proposed, since that library asks the card itself: cufrag_trees.py knows when an H200 takes them.
* Without the driver's library, cuDNN leaves out its kernels for filters of single channels. So it finds one without a card
  (cufrag_stubs.py).
* Convolutions by Fourier's and Winograd's transforms are not, either: cufrag_transforms.py knows what they take and when an H200 takes them
  first. In single precision, they are the largest.
"""
import ctypes
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python -I leaves it out
import cufrag_transforms
import cufrag_trees
from cufrag_transforms import TOGETHER, transforms
from cufrag_trees import DATA, FILTER, FORWARD, up

# cudnnBackendDescriptorType_t
CONVOLUTION, ENGINE, CONFIG, HEURISTICS, KNOB, GRAPH, TENSOR, DEVICE = 1, 2, 3, 4, 7, 15, 17, 38
# operation -> attributes x, w, y, convolution, alpha, beta
PARTS = {FORWARD: (704, 703, 705, 702, 700, 701), FILTER: (716, 715, 717, 714, 712, 713), DATA: (710, 709, 711, 708, 706, 707)}
# cudnnBackendAttributeType_t -> what it is made of
FORMS = {1: ctypes.c_int, 3: ctypes.c_int64, 4: ctypes.c_float, 7: ctypes.c_int, 8: ctypes.c_int, 9: ctypes.c_int, 11: ctypes.c_int,
         15: ctypes.c_void_p, 23: ctypes.c_int32}
LONG, FLOAT, KNOB_TYPE, NOTE, DESCRIPTOR, INT, CHAR = 3, 4, 9, 11, 15, 23, 24
TENSOR_CORES, ROUNDS_INPUTS, NOT_DETERMINISTIC = 0, 1, 4  # notes; PyTorch takes no plan with the second
INSTANT, FALLBACK, THOROUGH = 0, 2, 1  # what PyTorch asks for, and where it takes none of that (or all are tried); a longer list
TILE, WORKSPACE, CLUSTER_M, CLUSTER_N = 2, 25, 27, 28  # knobs
# sides of a tile by its knob, in kernels of CUTLASS 3: engines from 62 on
TILES = {0: (128, 128), 1: (128, 64), 3: (256, 128), 4: (256, 64), 5: (64, 64), 6: (128, 256), 7: (64, 128), 9: (64, 256),
         16: (256, 32), 18: (64, 192), 20: (256, 96)}
STREAM_K_FROM = 62
# Engines that the longer list has and the shorter has not, where the shorter does not have Fourier transforms, either: all of them
# are judged too slow (13 of 40 sizes without them, one of 237 with them)
TOO_SLOW = {FORWARD: {38, 46, 48}, DATA: {58, 76}}
FOLDS = 58  # the engine that folds strides of a data pass into channels
COUNTERS = 131  # bytes where there are more than two rounds of tiles
GROUPS_COUNTERS = 144  # the same where each group has them
PAIRS = 159  # bytes beside partial sums and their counters
# multiprocessors of an H200's 132 that clusters of each size filled (one H100: 102 by clusters of 6)
FILLED = {1: 132, 2: 132, 3: 117, 4: 120, 5: 110, 6: 108, 7: 105, 8: 120, 16: 112}


class Refused(Exception):
    pass


class Planner:
    def __init__(self, path, card):
        self.lib = ctypes.CDLL(path)
        for name, args in (("SetAttribute", 3), ("GetAttribute", 3)):
            getattr(self.lib, "cudnnBackend" + name).argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64] + \
                [ctypes.c_void_p] * (args - 2 + (name == "GetAttribute"))
        self.made = []
        described = json.loads(card)
        self.sms = described["multiProcessorCount"]
        self.trees = cufrag_trees.Trees()
        self.hopper = described["deviceVer"] // 100 == 9
        self.card = self.make(DEVICE)
        text = card.encode()
        self.check(self.lib.cudnnBackendSetAttribute(self.card, 2702, CHAR, len(text), text))
        self.finish(self.card)
        self.made.clear()

    def check(self, rc):
        if rc:
            raise Refused(rc)

    # ---- descriptors

    def make(self, kind):
        d = ctypes.c_void_p()
        self.check(self.lib.cudnnBackendCreateDescriptor(kind, ctypes.byref(d)))
        self.made.append(d)
        return d

    def finish(self, d):
        self.check(self.lib.cudnnBackendFinalize(d))
        return d

    def put(self, d, name, form, *values):
        array = (FORMS[form] * len(values))(*(getattr(v, "value", v) for v in values))
        self.check(self.lib.cudnnBackendSetAttribute(d, name, form, len(values), array))

    def get(self, d, name, form, most, kind=None):
        """Values; with kind, descriptors that are made for it."""
        some = [self.make(kind) for _ in range(most)] if kind is not None else [0] * most
        array, count = (FORMS[form] * most)(*(getattr(v, "value", v) for v in some)), ctypes.c_int64()
        self.check(self.lib.cudnnBackendGetAttribute(d, name, form, most, ctypes.byref(count), array))
        return (some if kind is not None else list(array))[:min(count.value, most)]

    def clear(self):
        for d in self.made:
            self.lib.cudnnBackendDestroyDescriptor(d)
        self.made.clear()

    # ---- a convolution

    def tensor(self, number, data_type, dims, strides):
        t = self.make(TENSOR)
        self.put(t, 901, 1, data_type)
        self.put(t, 902, LONG, *dims)
        self.put(t, 903, LONG, *strides)
        self.put(t, 906, LONG, number)
        self.put(t, 900, LONG, 16)
        return self.finish(t)

    def graph(self, q):
        c = self.make(CONVOLUTION)
        self.put(c, 100, 1, q.data_type if q.data_type == 1 else 0)  # sums in double or single precision
        self.put(c, 101, 7, 1)  # cross-correlation
        self.put(c, 106, LONG, q.dims - 2)
        for name, values in ((105, q.pads), (104, q.pads), (103, q.strides), (102, q.dilations)):
            self.put(c, name, LONG, *values)
        self.finish(c)
        op = self.make(q.operation)
        at = PARTS[q.operation]
        for i, part in enumerate((q.x, q.w, q.y)):
            self.put(op, at[i], DESCRIPTOR, self.tensor(i + 1, q.data_type, *part))
        self.put(op, at[3], DESCRIPTOR, c)
        self.put(op, at[4], FLOAT, 1.0)
        self.put(op, at[5], FLOAT, 0.0)
        self.finish(op)
        g = self.make(GRAPH)
        self.put(g, 801, DESCRIPTOR, op)
        self.aim(g, None)
        return self.finish(g)

    def aim(self, graph, heuristics):
        """At the card: it is named to one of the two."""
        if heuristics:
            self.put(heuristics, 204, DESCRIPTOR, self.card)

    def proposals(self, graph, mode):
        h = self.make(HEURISTICS)
        self.put(h, 201, DESCRIPTOR, graph)
        self.put(h, 200, 8, mode)
        self.aim(None, h)
        self.finish(h)
        return self.get(h, 202, DESCRIPTOR, 64, CONFIG)

    def usable(self, configs):
        """Configuration, engine and kind of those that PyTorch would take, in their order."""
        for config in configs:
            engine, number = self.engine_of(config)
            notes = self.get(engine, 1303, NOTE, 16)
            if ROUNDS_INPUTS not in notes:
                yield config, number, mask_of(notes)

    def plans(self, q, graph):
        """Single precision where the program forbids tensor cores: PyTorch asks for the second list where the first has nothing else."""
        kinds = set()
        for plan in self.usable(self.proposals(graph, INSTANT)):
            kinds.add(plan[2])
            yield plan
        if not kinds or q.data_type == 0 and all(kind >> TENSOR_CORES & 1 for kind in kinds):
            yield from self.usable(self.proposals(graph, FALLBACK))

    def answer(self, q):
        graph, plans = self.graph(q), {}
        for config, engine, kind in self.plans(q, graph):
            plans.setdefault(kind, (config, engine))
            if len(plans) == 4:
                break
        found = self.left_out(q, graph, plans) if plans and self.hopper else {}
        for kind, plan in plans.items():
            if kind not in found:
                found[kind] = self.bytes_of(q, graph, *plan)
        return " ".join("%d %d" % (size, kind) for kind, size in found.items())

    def left_out(self, q, graph, plans):
        """{kind: bytes} of plans that a card takes and that are not proposed without one: before all others, and where the first one that is taken has tensor
        cores, in single precision without them."""
        engines, knobs = {kind: engine for kind, (_, engine) in plans.items()}, self.knobs_of(next(iter(plans.values()))[0])
        kind, found = next(iter(plans)), {}
        if cufrag_trees.is_point(q):
            first, size = 1 << TENSOR_CORES, self.trees.product(q, engines, knobs)
        else:
            first, size = 0, cufrag_transforms.taken(self.trees, q, engines, knobs) if cufrag_transforms.is_candidate(q) else None
        if size is not None:
            kind, found = first, {first: size}
        if q.data_type == 0 and kind >> TENSOR_CORES & 1 and cufrag_transforms.is_candidate(q):
            size = cufrag_transforms.taken(self.trees, q, engines, knobs, "alone")
            if size is not None:
                found = {**(found or {kind: self.bytes_of(q, graph, *plans[kind])}), 0: size}
        return found

    def largest(self, q):
        """Of each kind, as cudnn.benchmark tries them: the heuristic's proposals and those of the fallback."""
        graph, most, folded = self.graph(q), {}, False
        instant = self.proposals(graph, INSTANT)
        for config, engine, mask in self.usable(instant + self.proposals(graph, FALLBACK)):
            size = self.bytes_of(q, graph, config, engine)
            most[mask] = max(most.get(mask, 0), size)
            folded |= engine == FOLDS
        left_out = {self.engine_of(c)[1] for c in self.proposals(graph, THOROUGH)} - {self.engine_of(c)[1] for c in instant}
        if not left_out & TOO_SLOW.get(q.operation, set()):
            most[0] = max(most.get(0, 0), transforms(q, folded))
        return " ".join("%d %d" % (size, mask) for mask, size in most.items())

    def engine_of(self, config):
        engine = self.get(config, 300, DESCRIPTOR, 1, ENGINE)[0]
        return engine, self.get(engine, 1301, LONG, 1)[0]

    def knobs_of(self, config):
        return {self.get(k, 600, KNOB_TYPE, 1)[0]: self.get(k, 601, LONG, 1)[0] for k in self.get(config, 302, DESCRIPTOR, 30, KNOB)}

    def bytes_of(self, q, graph, config, engine):
        size = self.get(config, 303, LONG, 1)[0]
        knobs = self.knobs_of(config) if engine >= STREAM_K_FROM else {}
        if not has_tiles(engine, knobs):
            return size
        try:
            alone = self.on_one_cluster(graph, engine, knobs) if is_streamk(engine, knobs) else size
        except Refused:
            return size
        return self.with_partial_sums(q, knobs, alone)

    def with_partial_sums(self, q, knobs, alone):
        """Sums that are split are added in pairs, and a counter tells of each pair; one more is there for more than two rounds of tiles."""
        (m, n), counted, at_once = TILES[knobs[TILE]], alone % 16 == COUNTERS % 16, min(cufrag_trees.groups_of(q), TOGETHER)
        last, few, found = streamk(q, knobs, self.sms, at_once if counted else 1)
        apart = 1 if counted else at_once  # groups that have a workspace each
        parts = self.trees.splits(q, found) if last and knobs[WORKSPACE] == 0 else 0
        if parts:
            partial = 4 * m * n * last * parts + PAIRS + 4 * (last * pairs(parts) + (not few))
            return alone - COUNTERS * counted + (partial if apart == 1 else apart * (up(partial, 16) * 16 - GROUPS_COUNTERS))
        if few:
            return alone - (COUNTERS if counted else apart * GROUPS_COUNTERS if apart > 1 else 0)
        return alone

    def on_one_cluster(self, graph, index, knobs):
        """Bytes without partial sums: one cluster has nobody to share a tile with."""
        engine = self.make(ENGINE)
        self.put(engine, 1300, DESCRIPTOR, graph)
        self.put(engine, 1301, LONG, index)
        self.put(engine, 1307, DESCRIPTOR, self.card)
        self.put(engine, 1306, INT, knobs[CLUSTER_M] * knobs[CLUSTER_N])
        self.finish(engine)
        config = self.make(CONFIG)
        self.put(config, 300, DESCRIPTOR, engine)
        choices = []
        for kind, value in knobs.items():
            choice = self.make(KNOB)
            self.put(choice, 600, KNOB_TYPE, kind)
            self.put(choice, 601, LONG, value)
            choices.append(self.finish(choice))
        self.put(config, 302, DESCRIPTOR, *choices)
        self.finish(config)
        return self.get(config, 303, LONG, 1)[0]


class Question:
    def __init__(self, numbers):
        numbers = iter(numbers)

        def take(count):
            return [next(numbers) for _ in range(count)]
        self.operation, self.data_type, self.dims = take(3)
        self.x, self.w, self.y = ((take(self.dims), take(self.dims)) for _ in "xwy")
        self.pads, self.strides, self.dilations = (take(self.dims - 2) for _ in range(3))


def mask_of(notes):
    return sum(1 << n for n in (TENSOR_CORES, NOT_DETERMINISTIC) if n in notes)


def has_tiles(engine, knobs):
    """Whether its tiles are known."""
    return engine >= STREAM_K_FROM and knobs.get(TILE) in TILES and WORKSPACE in knobs and CLUSTER_M in knobs


def is_streamk(engine, knobs):
    """Of those whose partial sums depend on the card."""
    return has_tiles(engine, knobs) and knobs.get(WORKSPACE) == 0


def pairs(parts):
    """Of so many partial sums, and of the sums of those."""
    return up(parts, 2) + pairs(up(parts, 2)) if parts > 1 else 0


def streamk(q, knobs, sms, at_once=1):
    """Tiles of the last round, whether there are two rounds or fewer, and what decides into how many parts the sums of the last
    round are split, so that they fill the card. at_once: groups whose tiles are of one round."""
    (tile_m, tile_n), m, n = TILES[knobs[TILE]], knobs[CLUSTER_M], knobs[CLUSTER_N]
    (x, w, y), taps = (q.x[0], q.w[0], q.y[0]), math.prod(q.w[0][2:])
    points, groups = [t[0] * math.prod(t[2:]) for t in (x, y)], cufrag_trees.groups_of(q)
    if q.operation == FORWARD:
        rows, columns, depth = up(points[1], tile_m), up(w[0] // groups, tile_n), taps * up(w[1], 32)
    elif q.operation == DATA:
        rows, columns, depth = up(points[0], tile_m), up(w[1], tile_n), taps * up(w[0] // groups, 32)
    else:
        rows, columns, depth = up(w[0] // groups, tile_m), up(w[1], tile_n) * taps, up(points[1], 32)
    cluster = m * n
    filled = FILLED.get(cluster, 132) * sms // 132 // cluster * cluster
    tiles = up(rows, m) * m * up(columns, n) * n * at_once
    last = tiles % filled if filled else 0
    room = filled / last if last else 0
    return last, tiles <= 2 * filled, [
        knobs[TILE], m, n, cluster, filled, tiles, last, room, depth, tiles // filled if filled else 0, depth * room, taps, x[1] // w[1], w[2] == 1,
        w[-1] == 1, int(room), room == int(room), x[1], w[0], math.prod(x[2:]), x[0], depth / max(1, int(room)), q.data_type == 2,
        points[0], q.x[1][1] == 1, knobs.get(13, -1), len(x)]


def main():
    try:
        planner = Planner(sys.argv[1], sys.stdin.readline().strip())
    except (OSError, Refused, AttributeError):
        return  # no cuDNN, or an older one
    for line in sys.stdin:
        try:
            ask = planner.largest if line.startswith("all") else planner.answer
            text = ask(Question(int(n) for n in line.removeprefix("all").split()))
        except Refused:
            text = ""
        planner.clear()
        print(text, flush=True)


if __name__ == "__main__":
    main()
