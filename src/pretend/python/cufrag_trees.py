# SPDX-License-Identifier: Apache-2.0
"""What cuDNN decides about convolutions only where a card is: trees of decisions stand for it.

* cuDNN without a card leaves out plans of cuBLASLt, since that library asks the card itself. Of a
  convolution of one point: whether the card takes such a plan ("whether"), and its bytes ("bytes").
* Into how many parts each sum of a stream-K kernel is split in the last round of tiles ("splits").
* Whether a card takes a convolution by transforms (cufrag_transforms.py: "transform" and "alone").

scripts/cudnn/tables.py grows the trees from the plans of a card, and writes cufrag_trees.csv: a
line with the release of cuDNN and the card, then for each decision
"PURPOSE,OPERATION,TYPE,LAYOUT,WORDS,TREES" (for transforms, the engine in place of the layout). A
tree is two characters for each word, a branch before what is below it. Words:

    FEATURE<THRESHOLD    the next node where the feature is at most this, else the one behind all
                         of the next; THRESHOLD alone: of the same feature as the word before
    =VALUE               a leaf: a number to add up, or SPLITS:A:B:REST:SHARE ("bytes": `bytes_of`
                         and `vote`), or PARTS:SHARE ("splits")

They hold for that release alone.
"""
import math

FORWARD, FILTER, DATA = 10, 11, 12
OPERATIONS = {FORWARD: "forward", FILTER: "filter", DATA: "data"}
TILES = ((64, 64), (128, 64), (64, 128), (128, 128), (256, 128), (128, 256), (192, 128), (128, 192))
MORE_TILES = (*TILES, (192, 192), (256, 256))
NARROW = 32  # channels or filters of a group
STREAM_K_TILE = 128 * 256 * 4  # bytes of a partial result; "A:B" of 0:0 counts these
LETTERS = "".join(chr(n) for n in range(33, 127) if chr(n) not in ',"')
SMS = 132  # of an H200


def up(a, b):
    return -(-a // b)


def whole(n):
    """How well rows of n items lie in words of 16 bytes."""
    return 3 if n % 8 == 0 else 2 if n % 4 == 0 else 1 if n % 2 == 0 else 0


def sizes(q):
    """Images, points of one, channels and filters."""
    return q.x[0][0], math.prod(q.x[0][2:]), q.x[0][1], q.w[0][0]


def groups_of(q):
    """Groups that have tiles of their own: narrow ones share them."""
    groups = q.x[0][1] // q.w[0][1]
    return groups if min(q.w[0][1], q.w[0][0] // groups) >= NARROW else 1


def sides(q):
    """Rows and columns of the product's result, and how many items each sum has."""
    n, area, c, k = sizes(q)
    return (c, k, n * area) if q.operation == FILTER else (n * area, k, c) if q.operation == FORWARD else (n * area, c, k)


def order_of(engines):
    """Of each kind (cufrag_planner.py's notes), its place among the first plans, and its engine."""
    kinds = list(engines)
    return [v for kind in (1, 0, 16, 17) for v in ((kinds.index(kind), engines[kind]) if kind in engines else (-1, -1))]


def features_of_point(q, engines, knobs):
    """Whole numbers that the trees look at. engines: {kind: engine} of the first of each kind that
    cuDNN proposes without a card, in its order; knobs: of the first of all, by their numbers."""
    engine = next(iter(engines.values()))
    n, area, c, k = sizes(q)
    rows, columns, depth = sides(q)
    found = [c, k, area, n, n * area, c * k, 64 * c // k, (n * area) ** 2 // (c * k), whole(c),
             whole(k), whole(area), q.x[0][2] == 1, q.data_type == 2, engine, c % 128, k % 128,
             c % 64, k % 64, min(c, k), max(c, k), up(n * area, 128) * up(k, 128),
             n * up(c, 128) * up(k, 128), n * up(c, 128) * up(area, 128),
             n * up(k, 128) * up(area, 128)]
    found += [knobs.get(kind, -1) for kind in (2, 25, 27, 28)]
    found += [rows, columns, depth, up(depth, 64) * 5 // 102, up(depth, 32), 64 * depth // rows,
              64 * depth // columns, 64 * rows // columns, rows % 256, columns % 256, depth % 64]
    for a, b in TILES:
        tiles = up(rows, a) * up(columns, b)
        found += [tiles, SMS // tiles, 2 * SMS // tiles, tiles % SMS]
    return found + order_of(engines)


def features_of_parts(q, engines, knobs):
    """For filter passes in half precision, channels last: the parts of sums are named by rules."""
    (rows, columns, depth), of_both = sides(q), []
    for side in (rows, columns):
        of_both += [side % 64, side % 128, side % 256]
    found = [rows, columns, depth, whole(rows), whole(columns), q.data_type == 2, rows * columns,
             4096 * depth // (rows * columns), rows * columns * depth, 64 * depth // rows,
             64 * depth // columns, 64 * rows // columns, min(rows, columns), max(rows, columns),
             *of_both, depth % 64]
    for a, b in MORE_TILES:
        tiles = up(rows, a) * up(columns, b)
        found += [tiles, SMS // tiles, 64 * SMS // tiles % 64, depth * tiles // SMS, up(depth, 32) // max(1, SMS // tiles)]
    return found + [next(iter(engines.values())), *(knobs.get(kind, -1) for kind in (2, 25, 27, 28)), *order_of(engines)]


def parts_of(text, images, rows, columns, depth):
    """How many parts sums have: a number; n: one for each image; WAVE/A/B: so many that tiles of A
    by B give a wave of so many; dN or uN: of N items or more, or of N at most."""
    if text == "n":
        return images
    if text[0] in "du":
        return depth // int(text[1:]) if text[0] == "d" else up(depth, int(text[1:]))
    number, *tile = map(int, text.split("/"))
    return number // (up(rows, tile[0]) * up(columns, tile[1])) if tile else number


def parse(tree, words):
    """[(feature, threshold, where it fails)] or values, a branch before what is below it."""
    nodes, open_branches = [], []
    for at in range(0, len(tree), 2):
        word = words[LETTERS.index(tree[at]) * len(LETTERS) + LETTERS.index(tree[at + 1])]
        if word[0] != "=":
            feature, threshold = map(int, word.split("<"))
            open_branches.append(len(nodes))
            nodes.append((feature, threshold, None))
            continue
        nodes.append(word[1:])
        while open_branches:  # the right side of the nearest branch that has none begins next
            branch = open_branches.pop()
            if nodes[branch][2] is None:
                nodes[branch] = (*nodes[branch][:2], len(nodes))
                open_branches.append(branch)
                break
    return nodes


def expanded(words):
    """A threshold alone belongs to the feature of the word before."""
    feature, out = "", []
    for word in words.split(" "):
        if word[0] != "=" and "<" not in word:
            word = feature + "<" + word
        feature = word.split("<")[0]
        out.append(word)
    return out


def leaf(nodes, found):
    at = 0
    while isinstance(nodes[at], tuple):
        feature, threshold, other = nodes[at]
        at = at + 1 if found[feature] <= threshold else other
    return nodes[at]


def is_point(q):
    return max(q.w[0][2:]) == 1 and q.w[0][1] == q.x[0][1] and max(q.strides) == 1 and not max(q.pads)


def key_of(q):
    last = q.x[1][1] == 1 and q.x[0][1] > 1
    return OPERATIONS[q.operation], "fp32" if q.data_type == 0 else "half", "nhwc" if last else "nchw"


def features_of_product(q, engines, knobs):
    of = features_of_parts if key_of(q) == ("filter", "half", "nhwc") else features_of_point
    return of(q, engines, knobs)


class Trees:
    def __init__(self, path):
        self.trees = {}  # by "PURPOSE,OPERATION,TYPE,LAYOUT"
        with open(path, encoding="ascii") as f:
            self.release = f.readline().split(",")[0].replace("cuDNN ", "")
            for line in f:
                key, words, trees = line.rstrip("\n").rsplit(",", 2)
                self.trees[key] = words, trees

    def ask(self, purpose, key, found):
        """Values of the leaves; trees are read when they are asked for."""
        name = ",".join((purpose, *key))
        trees = self.trees.get(name, [])
        if isinstance(trees, tuple):
            words = expanded(trees[0])
            trees = self.trees[name] = [parse(tree, words) for tree in trees[1].split(" ")]
        return [leaf(nodes, found) for nodes in trees]

    def sure(self, purpose, key, found):
        """Above 0: it is so."""
        return sum(map(int, self.ask(purpose, key, found)))

    def product(self, q, engines, knobs):
        """Bytes of cuBLASLt's plan of a point; None: a card does not take it."""
        if self.sure("whether", key_of(q), features_of_point(q, engines, knobs)) <= 0:
            return None
        return vote(q, self.ask("bytes", key_of(q), features_of_product(q, engines, knobs)))

    def splits(self, q, found):
        """The number that most voters say, each as often as it is sure."""
        shares = {}
        for value in self.ask("splits", (*key_of(q)[:2], "any"), found):
            parts, share = value.split(":")
            shares[int(parts)] = shares.get(int(parts), 0) + int(share)
        return max(shares, key=shares.get, default=0)


def vote(q, values):
    """Bytes by several trees, by their SHARE: first of sizes of about as much, then of each."""
    shares, about = {}, {}
    for value in values:
        code, share = value.rsplit(":", 1)
        size = bytes_of(q, code)
        shares[size] = shares.get(size, 0) + int(share)
        about[size // 4096] = about.get(size // 4096, 0) + int(share)
    return max(shares, key=lambda size: (about[size // 4096], shares[size]))


def bytes_of(q, value):
    """SPLITS partial results in 32 bits (`parts_of`), sides in units of A and B, and the REST."""
    splits, *numbers = value.split(":")
    rows, columns, depth = sides(q)
    splits = parts_of(splits, sizes(q)[0], rows, columns, depth)
    a, b, rest = map(int, numbers)
    if not a:
        return splits * STREAM_K_TILE + rest
    return splits * up(rows, a) * a * up(columns, b) * b * 4 + rest
