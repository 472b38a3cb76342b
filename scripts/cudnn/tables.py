#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cufrag_trees.csv and cufrag_workspaces.csv, from plans.csv.zst beside this and from nothing else.

    tables.py make OUT                 as `make tables` does it
    tables.py measured LIBCUDNN [STEP] how right they are about results/pretend/convolutions.csv, which no tree was grown from

A leaf of a tree of bytes says how these are made up ("SPLITS:A:B:REST", see cufrag_trees.py). `make` ends with how right the trees are
about the shapes that are kept aside (questions.py), by family.
"""
import bisect
import collections
import csv
import itertools
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../src/pretend/python"))
import cufrag_known as known
import cufrag_planner as planner
import cufrag_transforms as transforms
import cufrag_trees as trees
import grow
import plans as asked
import questions as drawn

# of each purpose: what grow.py does, trees, leaves of each
GROWN = {"whether": ("sum", 50, 22), "transform": ("sum", 50, 22), "alone": ("sum", 70, 30), "bytes": ("vote", 5, 1300),
         "splits": ("vote", 5, 1000)}
BINS = 100  # of a feature, a byte in grow.py

# aside: judges the trees; common: of the layers that most nets have
Row = collections.namedtuple("Row", "q plans card without aside hard common")


def rows_of(path):
    """Head of the file and its rows."""
    text = subprocess.run(["zstd", "-dcf", path], check=True, capture_output=True, text=True).stdout
    head, *lines = text.splitlines()
    questions = drawn.questions(asked.SEED, len(lines))
    if "crc32 %d" % asked.checksum(list(questions)) not in head:
        sys.exit("%s: its questions are not those that questions.py draws now" % path)
    common = sum(1 for _ in drawn.common(drawn.Nets()))
    return head, [row_of(line, *question, at < common) for at, (line, question) in enumerate(zip(lines, questions.items())) if line]


def row_of(line, numbers, is_hard, common):
    card, without, knobs, *proposed = line.split(",")
    knobs, plans = {i: int(v) for i, v in enumerate(knobs.split(" ")) if v not in ("", "-")}, {}
    for text in proposed:
        kind, engine, size = map(int, text.split(":"))
        plans[kind] = known.Plan(kind, engine, {} if plans else knobs, size)
    first = next(iter(plans.values()))
    plain = next((p for p in plans.values() if not p.kind & known.TENSOR_CORES), None)
    return Row(planner.Question(numbers), plans, plan_of(card, first), plan_of(without, plain), drawn.is_aside(numbers), is_hard,
               common)


def plan_of(text, same):
    """Engine and bytes; None: there is no such plan. Of what is the same, the bytes are those of all multiprocessors."""
    return (same.engine, same.size) if text == "=" else tuple(map(int, text.split(":"))) if text else None


# ---- what trees are grown from

def code_of(q, size):
    """SPLITS, A, B, REST that give the size, with the smallest rest; splits of -1: none is known, "n": a part for each image."""
    rows, columns, _ = trees.sides(q)
    images = trees.sizes(q)[0] * rows * columns * 4
    if q.operation == trees.FILTER and trees.key_of(q)[2] == "nchw" and 0 <= size - images <= 2048:
        return "n", 1, 1, size - images
    best = (2049, (-1, 1, 1, size))
    for a, b in itertools.product((1, 32, 64, 128), repeat=2):
        splits, rest = divmod(size, trees.up(rows, a) * a * trees.up(columns, b) * b * 4)
        cost = rest + (3 * (a > 1) + 3 * (b > 1) + 200 * (a > 1 and b > 1) if splits else 0)
        if cost < best[0] and splits < 4096:
            best = (cost, (splits, a, b, rest) if splits else (0, 1, 1, rest))
    if best[1][0] < 0 or best[1][0] > 140:
        tiles, rest = divmod(size, trees.STREAM_K_TILE)
        if tiles and rest <= 2048:
            return tiles, 0, 0, rest
    return best[1]


def name_parts(questions, codes, count=60):
    """Codes with rules for numbers of parts: of the rules that give a number, the one that most products follow."""
    tiles = [*itertools.product((64, 128, 192, 256), repeat=2), (32, 64), (64, 32), (32, 128), (128, 32), (32, 256), (256, 32), (64, 512),
             (512, 64)]
    rules = ["%d/%d/%d" % (wave, *tile) for tile in tiles for wave in (132, 264, 66, 88, 44, 396, 528, 198, 99)]
    rules += ["%s%d" % rule for rule in itertools.product("du", (352, 640, 672, 704, 896, 960, 1024, 1152, 1280, 1344, 1408, 1536, 1664,
                                                                 1792, 2048, 2304, 2688, 3072, 3584, 4608, 5120, 6144))]
    sides = [trees.sides(q) for q in questions]
    left = {at for at, code in enumerate(codes) if code[0] != "n" and code[0] > 0 and code[1] > 0}
    follow = {rule: {at for at in left if trees.parts_of(rule, 0, *sides[at]) == codes[at][0]} for rule in rules}
    names = [code[0] for code in codes]
    for _ in range(count):
        rule = max(rules, key=lambda r: len(follow[r] & left))
        for at in follow[rule] & left:
            names[at] = rule
        left -= follow[rule]
    return [(name, *code[1:]) for name, code in zip(names, codes)]


def cublaslts(rows):
    """Of each operation, the engine that a card takes for points and that is never proposed without one."""
    proposed, taken = collections.defaultdict(set), collections.defaultdict(collections.Counter)
    for r in rows:
        proposed[r.q.operation].update(plan.engine for plan in r.plans.values())
        if trees.is_point(r.q):
            taken[r.q.operation][r.card[0]] += 1
    return {operation: max((n, engine) for engine, n in counts.items() if engine not in proposed[operation])[1]
            for operation, counts in taken.items()}


def problems_of(rows):
    """{(PURPOSE, OPERATION, TYPE, LAYOUT or what stands for it): [(question, features, answer)]}"""
    problems, engine_of = collections.defaultdict(list), cublaslts(rows)
    for r in rows:
        q, first = r.q, next(iter(r.plans.values()))
        key, engines = trees.key_of(q), {plan.kind: plan.engine for plan in r.plans.values()}
        if trees.is_point(q):
            taken = r.card[0] == engine_of[q.operation]
            problems["whether", *key].append((q, trees.features_of_point(q, engines, first.knobs), taken))
            if taken:
                problems["bytes", *key].append((q, trees.features_of_product(q, engines, first.knobs), r.card[1]))
        if transforms.is_candidate(q) and key[:2] in transforms.ENGINES:
            found = transforms.features(q, engines, first.knobs)
            for number in transforms.ENGINES[key[:2]]:
                if not trees.is_point(q) and transforms.bytes_of(q, number):
                    problems["transform", *key[:2], str(number)].append((q, found, r.card[0] == number != first.engine))
                if q.data_type == 0 and first.kind & known.TENSOR_CORES and r.without:
                    problems["alone", *key[:2], str(number)].append((q, found, r.without[0] == number))
        if r.card[0] == first.engine and known.is_streamk(first):
            add_parts(problems["splits", *key[:2], "any"], q, first, r.card[1])
    for key, some in problems.items():
        if key[0] == "bytes":
            problems[key] = coded(key, some)
    return problems


def add_parts(problem, q, plan, size):
    groups = trees.groups_of(q)
    at_once, counted = min(groups, transforms.TOGETHER), plan.size % 16 == known.COUNTERS % 16
    last, _, found = known.streamk(q, plan.knobs, trees.SMS, at_once if counted else 1)
    tile = 4 * math.prod(known.TILES[plan.knobs[known.TILE]]) * max(1, last) * (1 if counted else at_once)
    parts = (size - plan.size + tile // 2) // tile
    if last and abs(size - plan.size - parts * tile) * 50 < tile:
        problem.append((q, found, str(max(0, parts))))


def coded(key, rows):
    """Bytes as what leaves say of them."""
    codes = [(row, code_of(row[0], row[2])) for row in rows]
    codes = [(row, code) for row, code in codes if code[0] != -1]
    if key[1:] == ("filter", "half", "nhwc"):
        named = name_parts([row[0] for row, _ in codes], [code for _, code in codes])
        codes = [(row, code) for (row, _), code in zip(codes, named)]
    return [(q, found, "%s:%d:%d:%d" % code) for (q, found, _), code in codes]


# ---- growing

def shortest(low, high):
    """The number from low up to before high that has the fewest digits."""
    return next((n for n in (-(-low // 10**d) * 10**d for d in range(15, 0, -1)) if 0 < low <= n < high), low)


def cuts_of(values):
    """Cuts between values, of as many rows each where there are more values than bins."""
    counts, cuts, at, after = sorted(collections.Counter(map(int, values)).items()), [], 0, 0
    for (value, n), (above, _) in zip(counts, counts[1:]):
        at += n
        if len(cuts) < BINS - 1 and (len(counts) <= BINS or at >= after):
            cuts.append(shortest(value, above))
            after = max(len(values) * (len(cuts) + 1) // BINS, at + 1)
    return cuts


def grown(key, rows):
    """A line of cufrag_trees.csv."""
    kind, count, leaves = GROWN[key[0]]
    classes = [] if kind == "sum" else sorted({row[2] for row in rows})
    numbers, columns = {name: at for at, name in enumerate(classes)}, list(zip(*(row[1] for row in rows)))
    cuts = [cuts_of(column) for column in columns]
    bins = [[bisect.bisect_left(some, value) for value in column] for some, column in zip(cuts, columns)]
    problem = grow.Problem(kind, [numbers.get(row[2], row[2]) + 0 for row in rows], bins, cuts)
    return ",".join((*key, *packed([[named(word, classes) for word in tree] for tree in problem.grow(count, leaves)])))


def named(word, classes):
    if word[0] != "=" or not classes:
        return word
    number, share = word[1:].split(":")
    return "=%s:%s" % (classes[int(number)], share)


def packed(some):
    """All different words, and the trees in two letters for each."""
    words = set(itertools.chain(*some))
    branches = sorted((word for word in words if word[0] != "="), key=lambda word: [int(n) for n in word.split("<")])
    words = branches + sorted(word for word in words if word[0] == "=")
    base, features = len(trees.LETTERS), [word.split("<")[0] for word in words]
    if len(words) > base * base:
        sys.exit("%d different words do not fit into two letters" % len(words))
    letters = {word: trees.LETTERS[at // base] + trees.LETTERS[at % base] for at, word in enumerate(words)}
    short = [word.split("<")[-1] if at and features[at] == features[at - 1] and word[0] != "=" else word for at, word in enumerate(words)]
    return " ".join(short), " ".join("".join(map(letters.get, tree)) for tree in some)


# ---- how right they are

def family(q):
    if trees.is_point(q):
        return "points, for filters" if q.operation == trees.FILTER else "points, forward and data"
    return "strides of 1" if transforms.is_candidate(q) else "others"


def is_near(found, card):
    return abs(found - card) <= max(2048, card // 50)


def compare(rows, what):
    """rows: (family, found, card)"""
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for name, found, card in rows:
        for c in (counts[name], counts["all"]):
            c[0] += 1
            c[1] += found == card
            c[2] += is_near(found, card)
    print("%-58s %7s %11s %18s" % (what, "n", "to the byte", "2 % or 2 KiB"))
    for name in sorted(counts, key=lambda n: (n == "all", n)):
        n, exact, near = counts[name]
        print("%-58s %7d %9.1f %% %16.1f %%" % (name, n, 100 * exact / n, 100 * near / n))


def judged(rows, of):
    """(row, first bytes found, bytes without tensor cores found or None)"""
    for r in rows:
        found = of.on_card(r.q, r.plans)
        plain = next((size for kind, size in found.items() if not kind & known.TENSOR_CORES), None)
        yield r, next(iter(found.values())), plain


def make(out):
    head, rows = rows_of(os.path.join(HERE, "plans.csv.zst"))
    lines = sorted(grown(*problem) for problem in problems_of([r for r in rows if not r.aside]).items())
    for name, some in (("cufrag_trees.csv", lines), ("cufrag_workspaces.csv", ())):
        with open(os.path.join(out, name), "w", encoding="ascii") as f:
            print(head, *some, sep="\n", file=f)
    aside, hard, alone = [], [], []
    with open(os.path.join(out, "cufrag_workspaces.csv"), "a", encoding="ascii") as f:
        for r, first, plain in judged([r for r in rows if r.aside or r.common], known.Known(out)):
            without = r.without and r.q.data_type == 0 and plain is not None
            if r.aside:
                (hard if r.hard else aside).append((family(r.q), first, r.card[1]))
                if without and next(iter(r.plans)) & known.TENSOR_CORES:
                    alone.append((family(r.q), plain, r.without[1]))
            off = -1 if is_near(first, r.card[1]) else r.card[1]
            off_plain = -1 if not without or is_near(plain, r.without[1]) else r.without[1]
            if r.common and max(off, off_plain) >= 0:
                print(known.text_of(r.q), off, off_plain, sep=",", file=f)
    compare(aside, "kept aside, as nets ask")
    compare(alone, "the same and the hard ones, without tensor cores")
    compare(hard, "kept aside, hard ones")


def question_of(shape, name):
    """Of a row of convolutions.csv."""
    type_name, layout, kind, *numbers = shape.split()
    dims = {"ncl": 1, "nchw": 2, "nhwc": 2, "ncdhw": 3, "ndhwc": 3}[layout]
    data_type = {"fp16": drawn.HALF, "bf16": drawn.BFLOAT}.get(type_name, drawn.FLOAT)
    c, k, groups, n = (int(numbers[at]) for at in (0, 1, -2, -1))
    each = [[int(p) for p in v.split("x")] * (1 if "x" in v else dims) for v in numbers[2 + 2 * dims:5 + 2 * dims]]
    how = [[int(v) for v in numbers[2:2 + dims]], [int(v) for v in numbers[2 + dims:2 + 2 * dims]], *each]
    if dims == 1:
        how = [[one, *values] for one, values in zip((1, 1, 1, 0, 1), how)]
    name = {"forward": "data", "data": "forward"}.get(name, name) if kind == "transposed" else name
    operation = {"forward": drawn.FORWARD, "data": drawn.DATA, "filter": drawn.FILTER}[name]
    return planner.Question(drawn.numbers_of(operation, data_type, layout.endswith("c"), c, k, *how, groups, n))


def measured(library, step=1):
    """Beside what PyTorch took for every STEP-th of 2,600 convolutions on an H200, in three passes each."""
    asks, rows = planner.Planner(library, asked.H200), []
    with open(os.path.join(HERE, "../../results/pretend/convolutions.csv"), encoding="ascii") as f:
        for at, row in enumerate(csv.DictReader(f)):
            q, without = question_of(row["shape"], row["pass"]), row["shape"].startswith("fp32")
            single = q.operation == trees.FILTER and q.x[0][1] > q.w[0][1] == 1 and q.x[1][1] > 1 and q.dims == 4
            if at // 3 % int(step) or single:  # filter passes of single channels are PyTorch's own
                continue
            pairs = list(zip(*[iter(map(int, asks.answer(q).split()))] * 2))
            found = [size for size, kind in pairs if not (without and kind & known.TENSOR_CORES)]
            rows.append((family(q) + (" (no TF32)" if without else ""), (found or [0])[0], int(row["card_bytes"])))
            asks.clear()
    compare(rows, "convolutions that PyTorch ran")


if __name__ == "__main__":
    {"make": make, "measured": measured}[sys.argv[1]](*sys.argv[2:])
