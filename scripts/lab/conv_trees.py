#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trees of src/pretend/python/cufrag_trees.csv, from the plans of a card.

    conv_trees.py questions SHAPES COUNT > QUESTIONS         # no card; SHAPES: lines of conv_workspaces.py shapes
    conv_trees.py ask QUESTIONS PLANS WORKERS SECONDS        # on a card: its first plans, and those of a card that is only described
    conv_trees.py ask-card QUESTIONS PLANS WORKERS SECONDS   # only the first (ask-none: only the second, which needs no card);
    conv_trees.py join CARD NONE > PLANS                     # both together
    conv_trees.py grow QUESTIONS PLANS TREES.csv [OLD.csv]   # no card; needs scikit-learn; what OLD is right about more often stays

A question is "OPERATION TYPE LAYOUT c k [d] h w [t] r s stride pad dilation groups n", stride, pad and dilation as one number or one for each
side ("2x1"); a plan BYTES:NOTES:ENGINE:KNOB=VALUE;..., the first one of each kind that the notes tell apart, with spaces between. `grow` keeps a
quarter of the shapes aside (conv_spread.py) and says how often the trees are right about these.
"""
import array
import collections
import ctypes
import functools
import gc
import glob
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/inside/nogpu/python"))
import conv_spread
import cufrag_planner as planner
import cufrag_transforms as transforms
import cufrag_trees as trees

KINDS = {name: number for number, name in trees.OPERATIONS.items()}
TYPES = {"fp32": 0, "fp16": 2, "bf16": 9}
TOGETHER = (("filter",), ("forward", "data"))  # operations whose trees a process grows
CUBLASLT = {"forward": 58, "data": 63, "filter": 62}  # its engine in cuDNN 9.19
H200 = {"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132,
        "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
        "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0,
        "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150109880320, "smClockRateKHz": 1980000,
        "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
        "deviceName": "NVIDIA H200"}


# ---- questions

def questions(path, count):
    rng, seen = random.Random(45), set()
    with open(path) as f:
        shapes = [[int(v) for v in line.split(",")[:10]] for line in f]
    channels = sorted({v for shape in shapes for v in shape[:2]})
    images = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 50, 64, 80, 96, 100, 128, 160, 192, 200, 256, 512)
    while len(seen) < count:
        if rng.random() < 0.2:
            shape, n, types = volume(rng), rng.choice(images[:14]), list(TYPES)
            layout = rng.choice(("nchw", "nhwc") if len(shape) == 10 else ("ncdhw", "ndhwc"))
            if n * math.prod(shape[2:2 + (len(shape) - 6) // 2]) * max(shape[:2]) * 4 < 12 << 30:
                seen.add((rng.choice(list(KINDS)), rng.choice(types), layout, *shape, n))
            continue
        c, k, h, w, r, s, stride, pad, dilation, groups = rng.choice(shapes)
        if rng.random() < 0.3:  # a product of no net in particular
            c, k, r, s, stride, pad, dilation, groups = rng.choice(channels), rng.choice(channels), 1, 1, 1, 0, 1, 1
        if rng.random() < 0.55:
            scale = rng.choice((96, 112, 128, 160, 192, 256, 288, 320, 384, 448, 512, 640)) / 224
            h, w = max(1, round(h * scale)) if h > 1 else 1, max(1, round(w * scale))
        n, operation = rng.choice(images), rng.choice(("forward", "data", "filter", "filter"))
        if n * h * w * max(c, k) * 4 < 12 << 30 and (operation != "data" or c > 4):
            seen.add((operation, rng.choice(list(TYPES)), rng.choice(("nchw", "nhwc")), c, k, h, w, r, s, stride, pad, dilation, groups, n))
    for row in seen:
        print(*row)


def volume(rng):
    """A convolution of three dimensions, or of one (a line of points)."""
    channels = (1, 3, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 144, 160, 192, 230, 256, 288, 320, 384, 460, 512, 640, 768, 921, 1024)
    c, k, groups, stride = rng.choice(channels), rng.choice(channels), 1, rng.choice((1, 1, 1, 2))
    if rng.random() < 0.4:
        taps = [1, rng.choice((1, 2, 3, 3, 5, 7, 9, 10, 15, 16, 31))]
        sides = [1, rng.choice((49, 99, 150, 187, 200, 250, 300, 375, 400, 499, 500, 750, 799, 999, 1000, 1500, 1599, 2000, 3000, 3199, 4000, 8000))]
    else:
        taps = list(rng.choice(((3, 3, 3), (3, 3, 3), (1, 1, 1), (2, 2, 2), (1, 3, 3), (3, 1, 1), (5, 5, 5), (3, 7, 7), (1, 7, 7), (4, 4, 4))))
        sides = [rng.choice((2, 4, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)), rng.choice((4, 7, 8, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56,
                                                                                                64, 80, 96, 112, 128, 160))]
        sides.append(sides[1] if rng.random() < 0.7 else rng.choice((8, 12, 16, 24, 32, 48, 64, 96)))
    if rng.random() < 0.15:
        groups = c if rng.random() < 0.6 else rng.choice((2, 4, 8))
        c = k = max(c, groups) // groups * groups
    pad = rng.choice((0, taps[-1] // 2, taps[-1] // 2)) if len(taps) == 2 or min(taps) == max(taps) else 0
    return c, k, *sides, *taps, stride, pad, 1, groups


def question(line):
    """As cufrag_planner.py takes it (in numbers, it is taken as it is); None: there is nothing to compute."""
    if line[0].isdigit():
        return planner.Question(int(v) for v in line.split())
    operation, type_name, layout, *numbers = line.split()
    dims = 3 if len(layout) == 5 else 2
    strides, pads, dilations = ([int(p) for p in v.split("x")] * (1 if "x" in v else dims) for v in numbers[2 + 2 * dims:5 + 2 * dims])
    c, k, *numbers = (int(v) for v in numbers[:2 + 2 * dims] + numbers[5 + 2 * dims:])
    sides, taps, (groups, n, *first_pad) = numbers[:dims], numbers[dims:2 * dims], numbers[2 * dims:]
    if dims == 2 and sides[0] == 1:
        strides[0] = dilations[0] = 1
        pads[0] = 0 if taps[0] == 1 else pads[0]
    pads[0] = first_pad[0] if first_pad else pads[0]
    y = [(side + 2 * p - d * (t - 1) - 1) // step + 1 for side, p, d, t, step in zip(sides, pads, dilations, taps, strides)]
    if min(y) < 1:
        return None

    def tensor(a, b, points):
        lengths, last = [b, *points], layout.endswith("c")
        steps = [1] * len(lengths)
        order = [0, *range(len(points), 0, -1)] if last else range(len(points), -1, -1)
        step = 1
        for at in order:
            steps[at] = step
            step *= lengths[at]
        return [a, *lengths, step, *steps]
    return planner.Question([KINDS[operation], TYPES[type_name], dims + 2, *tensor(n, c, sides), *tensor(k, c // groups, taps),
                             *tensor(n, k, y), *pads, *strides, *dilations])


# ---- on a card

class CardsPlanner(planner.Planner):
    """What cuDNN plans for the card itself."""

    def __init__(self, path, card):
        super().__init__(path, card)
        planner.FORMS[0], self.handle = ctypes.c_void_p, ctypes.c_void_p()
        self.check(self.lib.cudnnCreate(ctypes.byref(self.handle)))

    def aim(self, graph, heuristics):
        if graph:
            self.put(graph, 800, 0, self.handle)

    def bytes_of(self, q, graph, config, engine):
        return self.get(config, 303, planner.LONG, 1)[0]


class WithoutPartialSums(planner.Planner):
    def with_partial_sums(self, q, knobs, alone):
        return alone


def ask_some(path, out, number, workers, end, real):
    if not real:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    else:
        import torch  # noqa: F401 (loads cuBLASLt)
    packages = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin))
    beside = os.path.join(packages, "nvidia/cudnn/lib/libcudnn.so.9")
    library = (glob.glob(beside) + glob.glob("/usr/lib/x86_64-linux-gnu/libcudnn.so.9"))[0]
    asked = (CardsPlanner if real else WithoutPartialSums)(library, json.dumps(H200))
    with open(path) as f, open("%s.%d.%s" % (out, number, "card" if real else "none"), "w") as to:
        for at, line in enumerate(f):
            q = question(line) if at % workers == number and time.time() < end else None
            if q:
                try:
                    graph, plans = asked.graph(q), {}
                    for config, engine, kind in asked.plans(q, graph):
                        if kind not in plans:
                            knobs = ";".join("%d=%d" % k for k in asked.knobs_of(config).items())
                            plans[kind] = "%d:%d:%d:%s" % (asked.bytes_of(q, graph, config, engine), kind, engine, knobs)
                    print(at, *plans.values(), sep="\t", file=to)
                except planner.Refused:
                    pass
                asked.clear()


def ask(path, out, workers, seconds, kinds):
    multiprocessing.set_start_method("spawn")
    end = time.time() + seconds
    processes = [multiprocessing.Process(target=ask_some, args=(path, out, i, workers, end, kind == "card"))
                 for i in range(workers) for kind in kinds]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    for kind in kinds:
        with open(out + (".of_" + kind if len(kinds) > 1 else ""), "w") as f:
            for part in glob.glob("%s.*.%s" % (out, kind)):
                with open(part) as some:
                    f.write(some.read())
                os.remove(part)
    if len(kinds) > 1:
        with open(out, "w") as f:
            join(*(out + ".of_" + kind for kind in kinds), f)


def join(card, none, to=sys.stdout):
    plans = []
    for path in (card, none):
        with open(path) as f:
            plans.append(dict(line.rstrip("\n").split("\t", 1) for line in f if "\t" in line))
    for at in sorted(plans[0].keys() & plans[1].keys(), key=int):
        print(at, *(table[at].replace("\t", " ") for table in plans), sep="\t", file=to)


# ---- trees

def code_of(q, size):
    """SPLITS, A, B, REST that give the size, with the smallest rest; splits of -1: none is known, "n": a part for each image."""
    rows, columns, _ = trees.sides(q)
    images = trees.sizes(q)[0] * rows * columns * 4
    if q.operation == trees.FILTER and trees.key_of(q)[2] == "nchw" and 0 <= size - images <= 2048:
        return "n", 1, 1, size - images
    best = (2049, (-1, 1, 1, size))
    for a in (1, 32, 64, 128):
        for b in (1, 32, 64, 128):
            splits, rest = divmod(size, trees.up(rows, a) * a * trees.up(columns, b) * b * 4)
            cost = rest + (3 * (a > 1) + 3 * (b > 1) + 200 * (a > 1 and b > 1) if splits else 0)
            if cost < best[0] and splits < 4096:
                best = (cost, (splits, a, b, rest) if splits else (0, 1, 1, rest))
    if best[1][0] < 0 or best[1][0] > 140:
        tiles, rest = divmod(size, trees.STREAM_K_TILE)
        if tiles and rest <= 2048:
            return tiles, 0, 0, rest
    return best[1]


def short(value, digits):
    text = "%.*g" % (digits, value)
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def text_of_sum(nodes, at=0):
    node = nodes[at]
    if node["is_leaf"]:
        return ["=" + short(node["value"], 2)]
    return ["%d<%s" % (node["feature_idx"], short(node["num_threshold"], 6)), *text_of_sum(nodes, node["left"]), *text_of_sum(nodes, node["right"])]


def text_of_choice(tree, leaves, at=0):
    if tree.children_left[at] < 0:
        return ["=" + leaves[at]]
    left, right = (text_of_choice(tree, leaves, side[at]) for side in (tree.children_left, tree.children_right))
    return left if left == right and len(left) == 1 else ["%d<%.6g" % (tree.feature[at], tree.threshold[at]), *left, *right]


def choose(rows, leaves, code, voter):
    """A tree of (features, answer), as text; code: what the leaf says of the answer that it has most, and how sure it is, in ninths. voter: one of
    several trees, which look at other features."""
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier

    found, answers = np.array([r[0] for r in rows], dtype=float), [r[1] for r in rows]
    choice = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=2, random_state=voter, max_features=0.5)
    choice.fit(found, [str(a) for a in answers])
    in_leaf, says = collections.defaultdict(collections.Counter), {}
    for at, answer in zip(choice.apply(found), answers):
        in_leaf[at][answer] += 1
    for at, c in in_leaf.items():
        answer, most = c.most_common(1)[0]
        says[at] = "%s:%d" % (code(answer), max(1, round(9 * most / sum(c.values()))))
    return " ".join(text_of_choice(choice.tree_, says))


# transforms that are taken first are rare; without tensor cores, they depend on more
ROUNDS = {"transform": {"max_iter": 200, "learning_rate": 0.1, "max_features": 0.3, "max_leaf_nodes": 31},
          "alone": {"max_iter": 200, "learning_rate": 0.18, "max_features": 0.5, "max_leaf_nodes": 63},
          "whether": {"max_iter": 110, "learning_rate": 0.18, "max_leaf_nodes": 31}}


def grow_sum(key, rows):
    """Trees whose values are added up: above 0, it is so."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier

    whether = HistGradientBoostingClassifier(min_samples_leaf=4, l2_regularization=1, early_stopping=False, random_state=0, **ROUNDS[key[0]])
    whether.fit(np.stack([r.found for r in rows]), np.array([r.taken for r in rows]))
    return ["=%.3g" % whether._baseline_prediction.ravel()[0], *(" ".join(text_of_sum(tree.nodes)) for (tree,) in whether._predictors)]


def grow_parts(_, rows):
    return [choose([(r.found, r.taken) for r in rows], 3000, str, voter) for voter in range(3)]


def grow_bytes(key, rows):
    known = [(r, code) for r, code in ((r, code_of(r.q, r.size)) for r in rows) if code[0] != -1]
    products = [(r.found, code) for r, code in known]
    if key[1:] == ("filter", "half", "nhwc"):
        named = name_parts([r.q for r, _ in known], [code for _, code in known])
        products = [(trees.features_of_parts(r.q, r.engines, r.knobs), code) for (r, _), code in zip(known, named)]
    return [choose(products, 6000, lambda c: "%s:%d:%d:%d" % c, voter) for voter in range(3)]


def name_parts(asked, codes, count=60):
    """Codes with rules for numbers of parts: of the rules that give a number, the one that most products follow."""
    import numpy as np
    sides = np.array([trees.sides(q) for q in asked]).T
    parts = np.array([code[0] if code[0] != "n" and code[0] > 0 and code[1] > 0 else -1 for code in codes])
    tiles = [*itertools.product((64, 128, 192, 256), repeat=2), (32, 64), (64, 32), (32, 128), (128, 32), (32, 256), (256, 32), (64, 512), (512, 64)]
    rules = ["%d/%d/%d" % (wave, *tile) for tile in tiles for wave in (132, 264, 66, 88, 44, 396, 528, 198, 99)]
    rules += ["%s%d" % rule for rule in itertools.product("du", (352, 640, 672, 704, 896, 960, 1024, 1152, 1280, 1344, 1408, 1536, 1664, 1792, 2048,
                                                                 2304, 2688, 3072, 3584, 4608, 5120, 6144))]
    follow = {rule: trees.parts_of(rule, 0, *sides) == parts for rule in rules}
    names, left = [code[0] for code in codes], parts > 0
    for _ in range(count):
        rule = max(rules, key=lambda rule: (follow[rule] & left).sum())
        for at in np.flatnonzero(follow[rule] & left):
            names[at] = rule
        left &= ~follow[rule]
    return [(name, *code[1:]) for name, code in zip(names, codes)]


# taken: the answer of a tree; aside: it judges and is never fitted
Row = collections.namedtuple("Row", "q found size taken engines knobs aside")


@functools.cache
def knobs_in(text):
    return dict((int(v) for v in pair.split("=")) for pair in text.split(";") if pair)


def plan_of(text):
    size, kind, engine, knobs = text.split(":")
    return int(size), int(kind), int(engine), knobs_in(knobs)


def rows_of(path, plans, operations):
    """{(PURPOSE, OPERATION, TYPE, LAYOUT or what stands for it): rows}"""
    rows, named = collections.defaultdict(list), {*operations, *(str(KINDS[name]) for name in operations)}
    with open(path) as f:
        lines = [line if line.split(" ", 1)[0] in named else None for line in f.read().splitlines()]
    with open(plans) as f:
        asked = [row for row in f.read().splitlines() if lines[int(row.split("\t", 1)[0])]]
    random.Random(1).shuffle(asked)
    for row in asked:
        at, card, none = row.split("\t")
        q, aside = question(lines[int(at)]), conv_spread.kept_aside(lines[int(at)])
        on_card, proposed = ([plan_of(text) for text in plans.split()] for plans in (card, none))
        (size, _, engine, _), (alone, kind, planned, knobs) = on_card[0], proposed[0]
        key, engines = trees.key_of(q), {plan[1]: plan[2] for plan in proposed}

        def add(purpose, found, taken, size=size):
            rows[purpose].append(Row(q, array.array("f", found), size, taken, engines, knobs, aside))
        if trees.is_point(q):
            add(("whether", *key), trees.features_of_point(q, engines, knobs), engine == CUBLASLT[key[0]])
        if transforms.is_candidate(q) and key[:2] in transforms.ENGINES:
            add_transforms(add, q, key, on_card, proposed[0], engines)
        if engine == planned and planner.is_streamk(planned, knobs):
            add_parts(add, q, key, knobs, size, alone)
    return rows


def add_transforms(add, q, key, on_card, first, engines):
    without = [plan for plan in on_card if not plan[1] & 1 << planner.TENSOR_CORES]
    _, kind, planned, knobs = first
    found = transforms.features(q, engines, knobs)
    for number in transforms.ENGINES[key[:2]]:
        if not trees.is_point(q) and transforms.bytes_of(q, number):
            add(("transform", *key[:2], str(number)), found, on_card[0][2] == number != planned)
        if q.data_type == 0 and kind & 1 << planner.TENSOR_CORES and without:
            add(("alone", *key[:2], str(number)), found, without[0][2] == number, without[0][0])


def add_parts(add, q, key, knobs, size, alone):
    groups = trees.groups_of(q)
    at_once, counted = min(groups, transforms.TOGETHER), alone % 16 == planner.COUNTERS % 16
    last, _, found = planner.streamk(q, knobs, H200["multiProcessorCount"], at_once if counted else 1)
    parts = (size - alone) / (4 * math.prod(planner.TILES[knobs[planner.TILE]]) * max(1, last) * (1 if counted else at_once))
    if last and abs(parts - round(parts)) < 0.02:
        add(("splits", *key[:2], "any"), found, max(0, round(parts)))


def grow(path, plans, out_path, old=None):
    with multiprocessing.get_context("spawn").Pool(len(TOGETHER)) as pool:
        grown = pool.starmap(grow_some, [(path, plans, operations, old) for operations in TOGETHER], 1)
    with open(out_path, "w") as out:
        print(*(",".join((*key, text.strip())) for key, texts in sorted(itertools.chain(*grown)) for text in texts), sep="\n", file=out)


def grow_some(path, plans, operations, old):
    gc.disable()  # rows stay, and there are millions
    rows, before = rows_of(path, plans, operations), trees.Trees(old).trees if old else {}
    for key in list(rows):
        if key[0] == "whether":
            rows["bytes", *key[1:]] = [r for r in rows[key] if r.taken]
    return [(key, grow_one(key, rows[key], before.get(",".join(key)))) for key in sorted(rows)]


def grow_one(key, rows, old):
    """Trees of this and the old ones, whichever are right more often about what was kept aside; voters of both, where that is a hundredth more."""
    fit, aside = [r for r in rows if not r.aside], [r for r in rows if r.aside]
    new = {"splits": grow_parts, "bytes": grow_bytes}.get(key[0], grow_sum)(key, fit)
    ways, best = {"new": new, **({"old": old} if old else {}), **({"both": old[:3] + new} if old and key[0] == "bytes" else {})}, "new"
    right = {name: measure(texts, key, aside) for name, texts in ways.items()}
    for name in ways:
        if right[name] > right[best] + (0.01 if name == "both" else 0):
            best = name
    print("%-28s %6d kept aside: %s; %s" % (" ".join(key), len(aside), ", ".join("%s %.1f %%" % (n, 100 * v) for n, v in right.items()), best), flush=True)
    return ways[best]


def measure(texts, key, aside):
    """How often the trees say what the card did, of what was kept aside: bytes, parts, or whether it is so."""
    grown, right = trees.Trees(os.devnull), 0
    grown.trees[",".join(key)] = list(texts)
    for r in aside:
        if key[0] == "bytes":
            right += grown.bytes_of_product(r.q, r.engines, r.knobs) == r.size
        elif key[0] == "splits":
            right += grown.splits(r.q, r.found) == r.taken
        else:
            right += (sum(map(float, grown.ask(key[0], key[1:], r.found))) > 0) == r.taken
    return right / max(1, len(aside))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "questions":
        questions(arguments[0], int(arguments[1]))
    elif command.startswith("ask"):
        ask(arguments[0], arguments[1], int(arguments[2]), float(arguments[3]), {"ask": ("card", "none")}.get(command, (command[4:],)))
    elif command == "join":
        join(*arguments)
    else:
        grow(*arguments)
