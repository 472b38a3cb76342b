#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workspaces of the pretended card beside a card's, by class: library_compare.py CARD.csv OWN.csv [WORST]

The files are solver.csv or fft.csv of library_workspaces.py: with the same SEED, both ask the same questions. A class is a function and a type, or a
kind of transform. "aside": every fifth question by checksum, at which nobody looked while the rules were derived. WORST rows of each class follow it.
"""
import collections
import csv
import sys
import zlib


def answers(path):
    with open(path) as f:
        rows = csv.reader(f)
        names = next(rows)
        key = names.index("bytes")
        return {tuple(r[:key]): int(r[key]) for r in rows}  # of the card, not of the host


def is_aside(question):
    """The same questions for each type."""
    return zlib.crc32(",".join(question[:1] + question[2:]).encode()) % 5 == 0


def kind(question):
    """Of a transform: numbers of sides, too."""
    return (*question[:2], question[2].count("x") + 1) if len(question) == 4 else question[:2]


def share(few, all_):
    return "%d of %d (%.2f %%)" % (few, all_, 100 * few / all_ if all_ else 100)


def main():
    card, own = answers(sys.argv[1]), answers(sys.argv[2])
    worst = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    both = [q for q in card if q in own]
    groups = collections.defaultdict(list)
    for q in both:
        groups[kind(q)].append(q)
    print("class: equal; of those aside")
    for k in sorted(groups, key=str):
        off = sorted((q for q in groups[k] if card[q] != own[q]), key=lambda q: -abs(card[q] - own[q]))
        aside = [q for q in groups[k] if is_aside(q)]
        print(",".join(map(str, k)) + ":", share(len(groups[k]) - len(off), len(groups[k])) + ";",
              share(sum(card[q] == own[q] for q in aside), len(aside)))
        for q in off[:worst]:
            print("   ", ",".join(q), "card", card[q], "own", own[q])
    aside = [q for q in both if is_aside(q)]
    print("all:", share(sum(card[q] == own[q] for q in both), len(both)) + ";", share(sum(card[q] == own[q] for q in aside), len(aside)))
    print("answers of the card that the pretended one does not give:", len(card) - len(both))


main()
