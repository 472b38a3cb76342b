# SPDX-License-Identifier: Apache-2.0
"""Grows the trees of cufrag_trees.csv, for tables.py. Integers, and doubles that only one operation
at a time rounds, in a fixed order: the same trees on every machine.

Trees of a "sum": answers are 0 or 1, values of leaves are added up (above 0, it is so). Of a
"vote": answers are numbers of classes, a leaf has the most frequent one, and how frequent it is, in
ninths. A tree is a list of words, a branch before what is below it:

    FEATURE<THRESHOLD   the next node where the feature is at most the threshold, else the one
                        behind all nodes of the next
    =VALUE              a leaf
"""
import numpy

SCORE = 256  # units of 1 in a sum's values, which are logarithms of odds
LARGEST = 2000  # score beyond which all are equally sure
RATE_PERCENT = 20
RIDGE = 65536  # what is added to the weight of a leaf


def likely():
    """Chances of scores, in 65,536ths. Powers of the 256th root of e, by multiplication: no
    library's exp is the same everywhere."""
    chances, odds = [0] * (2 * LARGEST + 1), 1.0
    for score in range(LARGEST + 1):
        chances[LARGEST + score] = int(65536 * (odds / (1 + odds)))
        chances[LARGEST - score] = 65536 - chances[LARGEST + score]
        odds *= 1.0039138893383475
    return numpy.array(chances)


def dice(seed):
    """splitmix64"""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & (1 << 64) - 1
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
        yield z ^ z >> 31


def toward_zero(a, b):
    return a // b if a >= 0 else -(-a // b)


class Node:
    """rows: their numbers; best: gain, feature, bin of its split; below: a branch's two nodes."""

    def __init__(self, rows):
        self.rows, self.best, self.below = rows, (0.000001, -1, 0), ()


class Problem:
    """bins: of each feature, between which of its cuts the rows are."""

    def __init__(self, kind, answers, bins, cuts):
        self.is_sum, self.answers, self.cuts = kind == "sum", numpy.array(answers), cuts
        self.bins, self.chances = numpy.array(bins, numpy.uint8), likely()
        self.dice = self.scores = self.slopes = self.weights = None  # of each row, for sums

    # ---- one split: how much better two sides tell the answers than both together

    def try_sum(self, rows, bins, count):
        """By a sum's slopes and weights."""
        slope, weight = (numpy.bincount(bins, some[rows], count + 1).cumsum()
                         for some in (self.slopes, self.weights))
        left, left_weight, slope, weight = slope[:-1], weight[:-1], slope[-1], weight[-1]
        right, right_weight = slope - left, weight - left_weight
        gains = left * left / (left_weight + RIDGE) + right * right / (right_weight + RIDGE)
        gains -= slope * slope / (weight + RIDGE)
        gains[(left_weight == 0) | (right_weight == 0)] = -1
        return gains

    def try_vote(self, rows, bins, count):
        """By squares of the numbers of each class (Gini)."""
        order = numpy.argsort(bins, kind="stable")
        answers, n = self.answers[rows[order]], len(rows)
        by_class, all_ = numpy.argsort(answers, kind="stable"), numpy.bincount(answers)
        before = numpy.empty(n, int)  # rows of the same class before each
        before[by_class] = numpy.arange(n) - numpy.repeat(all_.cumsum() - all_, all_)
        left = numpy.append(0, (2 * before + 1).cumsum())
        moved = numpy.append(0, (2 * (all_[answers] - before) - 1).cumsum())
        right = (all_ * all_).sum() - moved
        at = numpy.bincount(bins, minlength=count + 1)[:count].cumsum()
        with numpy.errstate(divide="ignore", invalid="ignore"):
            gains = right[at] / (n - at) + left[at] / at - left[n] / n
        gains[(at < 2) | (n - at < 2)] = -1
        return gains

    def split(self, node):
        """Half of the features, which other nodes and trees draw otherwise."""
        attempt = self.try_sum if self.is_sum else self.try_vote
        for feature, (cuts, drawn) in enumerate(zip(self.cuts, self.dice)):
            if drawn & 1 or not cuts or len(node.rows) < 4:
                continue
            gains = attempt(node.rows, self.bins[feature][node.rows], len(cuts))
            at = int(gains.argmax())
            if gains[at] > node.best[0]:
                node.best = float(gains[at]), feature, at

    # ---- one tree

    def finish(self, rows):
        node = Node(rows)
        if self.is_sum:
            slope, weight = int(self.slopes[rows].sum()), int(self.weights[rows].sum())
            step = toward_zero(slope * SCORE * RATE_PERCENT, 100)
            node.leaf = toward_zero(step, weight + RIDGE)
        else:
            counts, n = numpy.bincount(self.answers[rows]), len(rows)
            answer = int(counts.argmax())
            node.leaf = answer, max(1, (18 * int(counts[answer]) + n) // (2 * n))
        self.split(node)
        return node

    def tree(self, leaves):
        """The best leaf is split until there are as many as there may be."""
        nodes = [self.finish(numpy.arange(len(self.answers)))]
        for _ in range(leaves - 1):
            open_ = (n for n in nodes if not n.below and n.best[1] >= 0)
            node = max(open_, key=lambda n: n.best[0], default=None)
            if not node:
                break
            low = self.bins[node.best[1]][node.rows] <= node.best[2]
            node.below = self.finish(node.rows[low]), self.finish(node.rows[~low])
            nodes += node.below
        return nodes

    def words(self, node):
        below = [self.words(n) for n in node.below]
        if not below:
            return ["=%d" % node.leaf if self.is_sum else "=%d:%d" % node.leaf]
        if not self.is_sum and below[0] == below[1] and len(below[0]) == 1:  # both say the same
            return below[0]
        cut = self.cuts[node.best[1]][node.best[2]]
        return ["%d<%d" % (node.best[1], cut), *below[0], *below[1]]

    # ---- trees that are added up

    def weigh(self):
        chance = self.chances[LARGEST + self.scores.clip(-LARGEST, LARGEST)]
        self.slopes, self.weights = 65536 * self.answers - chance, chance * (65536 - chance) >> 16

    def grow(self, trees, leaves):
        """The trees; of a sum, first the score of all rows before any."""
        if self.is_sum:
            so = 65536 * int(self.answers.sum()) // len(self.answers)
            scores = (s for s in range(-LARGEST, LARGEST) if self.chances[LARGEST + s] >= so)
            score = next(scores, LARGEST)
            self.scores = numpy.full(len(self.answers), score)
            yield ["=%d" % score]
        for tree in range(trees):
            self.dice = dice(tree)
            if self.is_sum:
                self.weigh()
            nodes = self.tree(leaves)
            for node in nodes if self.is_sum else ():
                if not node.below:
                    self.scores[node.rows] += node.leaf
            yield self.words(nodes[0])
