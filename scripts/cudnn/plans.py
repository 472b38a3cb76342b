#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a card's cuDNN plans for the convolutions of questions.py, beside what it plans where no card is: plans.csv.zst.

    plans.py PLANS.csv [COUNT [SECONDS [WORKERS]]]     on a card of compute capability 9 (200000, 540, 16)

docs/new-cudnn.md says how to make the file and the tables from it. It has a line for each question, in their order:

    CARD,WITHOUT,KNOBS,PROPOSED,...

* PROPOSED: the first plan of each kind that cuDNN proposes without a card: KIND:ENGINE:BYTES (of a
  stream-K kernel, without partial sums). KIND: bit 0 for tensor cores, bit 4 for not deterministic.
* KNOBS: of the first of these, in order of their numbers, 0 to the last that it has; "-" where it has none of that number.
* CARD: ENGINE:BYTES of the card's first plan; WITHOUT: of its first one without tensor cores, in single precision. "=": as the first
  proposed plan (of those without tensor cores).

An empty line: cuDNN has no plan for the question. The first line has the release, the card, the
seed, and a checksum of the questions."""
import ctypes
import glob
import importlib.util
import multiprocessing
import os
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../src/pretend/python"))
import questions as drawn
import cufrag_planner as planner

SEED, CHUNK = 919, 250
TENSOR_CORES = 1 << planner.TENSOR_CORES
H200 = planner.card_of("132 232448 32 2048 150109880320 1980000 62914560 900 NVIDIA H200")


# ---- on a card

class Card(planner.Planner):
    """Plans of the card itself."""

    def __init__(self, path, card):
        super().__init__(path, card)
        planner.FORMS[0], self.handle = ctypes.c_void_p, ctypes.c_void_p()
        self.check(self.lib.cudnnCreate(ctypes.byref(self.handle)))

    def knowledge(self, capability):
        return None

    def aim(self, graph, heuristics):
        if graph:
            self.put(graph, 800, 0, self.handle)

    def asked(self, q):
        graph, first, without = self.graph(q), None, None
        for config, engine, kind in self.plans(q, graph):
            plan = (engine, self.get(config, 303, planner.LONG, 1)[0])
            first = first or plan
            if not kind & TENSOR_CORES or q.data_type:
                without = plan
                break
        return first and "%d:%d," % first + ("%d:%d" % without if q.data_type == 0 and without else "")


class NoCard(planner.Planner):
    """Plans without a card, as cufrag_known.py takes them."""

    def knowledge(self, capability):
        return True

    def asked(self, q):
        plans = self.proposed(q, self.graph(q)).values()
        knobs = next(iter(plans)).knobs if plans else {}
        texts = ("%d" % knobs[i] if i in knobs else "-" for i in range(max(knobs, default=-1) + 1))
        return plans and ",".join((" ".join(texts), *("%d:%d:%d" % (plan.kind, plan.engine, plan.size) for plan in plans)))


def library():
    packages = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin)) if importlib.util.find_spec("torch") else ""
    places = [os.path.join(packages, "nvidia/cudnn/lib"), "/usr/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64"]
    return [path for place in places for path in glob.glob(place + "/libcudnn.so.9")][0]


def start(kind):
    global ASKED
    if kind is NoCard:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    else:
        import torch  # noqa: F401 (loads cuBLASLt)
    ASKED = kind(library(), H200)


def ask(some):
    lines = []
    for numbers in some:
        try:
            lines.append(ASKED.asked(planner.Question(numbers)) or "")
        except planner.Refused:
            lines.append("")
        ASKED.clear()
    return lines


def joined(card, none):
    """A line of the file."""
    if not card or not none:
        return ""
    proposed = none.split(",")[1:]
    plain = [p for p in proposed if not int(p.split(":")[0]) & TENSOR_CORES]
    first, without = card.split(",")
    first = "=" if first == proposed[0].split(":", 1)[1] else first
    without = "=" if plain and without == plain[0].split(":", 1)[1] else without
    return ",".join((first, without, none))


def checksum(questions):
    return zlib.crc32(repr(questions).encode())


def main(path, count=200000, seconds=540, workers=16):
    assert importlib.util.find_spec("torch") and os.path.exists("/dev/nvidiactl"), "this needs PyTorch and a card"
    until, questions, lines = time.time() + float(seconds), list(drawn.questions(SEED, int(count))), []
    some = [questions[at:at + CHUNK] for at in range(0, len(questions), CHUNK)]
    pools = [multiprocessing.Pool(int(workers), start, (kind,)) for kind in (Card, NoCard)]
    for card, none in zip(*(pool.imap(ask, some) for pool in pools)):
        lines += map(joined, card, none)
        if time.time() > until:
            break
    for pool in pools:
        pool.terminate()
    import torch  # a process that knows the card has no children by fork
    version = ctypes.CDLL(library()).cudnnGetVersion()
    with open(path, "w", encoding="ascii") as f:
        print("cuDNN %d.%d.%d" % (version // 10000, version // 100 % 100, version % 100), torch.cuda.get_device_name(),
              "seed %d" % SEED, "questions %d" % len(lines), "crc32 %d" % checksum(questions[:len(lines)]), sep=",", file=f)
        print(*lines, sep="\n", file=f)


if __name__ == "__main__":
    main(*sys.argv[1:])
