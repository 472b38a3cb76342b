#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of convolutions and attention, in TAP: plans.py BUILD/tests/drivers

Programs describe them as PyTorch does; another process plans, and is started once, so each case of
plans.cases has a process of its own. A convolution is

    OPERATION TYPE LAYOUT any|without N C SIDE K R STRIDE GROUPS [pad=P] [3d]

without: tensor cores. It is padded by R / 2. Lines:

    card TEXT                   CUFRAG_PRETEND
    script VERSION KNOWN TEXT   the planner says this always; KNOWN: what a card adds to its plans
    own TEXT                    this machine's cuDNN plans for that card
    planner                     the version that planned
    plans CONVOLUTION           BYTES/NOTES of all
    first CONVOLUTION [above N] bytes of the first that a program takes; yes if they are more
    largest CONVOLUTION         of all, as cudnn.benchmark tries them
    taken MOST CONVOLUTION      how many plans PyTorch gets that asks for so many, and their bytes
    measured                    those of convolutions.csv are first, but for convolutions_missed.csv
    attention plain|training|masked|causal IMAGES HEADS SHARED CHANNELS QUERIES KEYS"""
import ctypes
import glob
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "../../../src/pretend/python")
sys.path[:0] = [SOURCES, os.path.join(HERE, "../../support")]
from pretended import Library, in_a_process  # noqa: E402
from driven import Skipped, cases, in_lines, main  # noqa: E402
import cufrag_known  # noqa: E402
import cufrag_stubs  # noqa: E402

# cudnnBackendDescriptorType_t, and of operations the first attribute: convolution, w, x, y
POINTWISE_SETTINGS, CONVOLUTION, CONFIG, HEURISTICS = 0, 1, 3, 4
POINTWISE, GRAPH, TENSOR, PRODUCT, ATTENTION = 13, 15, 17, 19, 41
OPERATIONS = {"forward": (10, 702), "data": (12, 708), "filter": (11, 714)}
TYPES = {"fp32": 0, "fp16": 2, "bf16": 9}
GEN_INDEX = 501
MISSED_MOST = 18  # may only fall
CUDNN = ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda-13.0/lib",
         "/usr/lib/x86_64-linux-gnu")


class Plans:
    """What a program asks."""

    def __init__(self, folder):
        self.folder, self.library = folder, Library()

    def make(self, kind, **lists):
        """A descriptor with attributes of 64 bits."""
        d = ctypes.c_void_p()
        self.library.find("cudnnBackendCreateDescriptor")(kind, ctypes.byref(d))
        for name, values in lists.items():
            values = values if isinstance(values, (list, tuple)) else [values]
            array = (ctypes.c_int64 * len(values))(*(getattr(v, "value", v) for v in values))
            self.library.find("cudnnBackendSetAttribute")(d, int(name[1:]), 0,
                                                          ctypes.c_int64(len(values)), array)
        return d

    def get(self, d, name, array):
        """How many values there are; the array gets them."""
        count = ctypes.c_int64(-1)
        self.library.find("cudnnBackendGetAttribute")(
            d, name, 0, ctypes.c_int64(len(array) if array else 0), ctypes.byref(count), array)
        return count.value

    def bytes_of(self, d):
        size = (ctypes.c_int64 * 1)()
        self.get(d, 303, size)
        return size[0]

    def tensor(self, kind, dims, strides=()):
        return self.make(TENSOR, _901=kind, _902=dims, **({"_903": strides} if strides else {}))

    # ---- convolutions

    def heuristics(self, words):
        operation, kind, layout, _, *rest = words
        n, c, side, k, r, stride, groups = map(int, rest[:7])
        pad = next((int(w[4:]) for w in rest[7:] if w.startswith("pad=")), r // 2)
        kind, out = TYPES[kind], (side + 2 * pad - r) // stride + 1
        deep = "3d" in rest  # a third dimension is as the second

        def tensor(n, c, side):
            strides = [c * side * side, *([1, c * side, c] if layout == "nhwc" else
                                          [side * side, side, 1])]
            return self.tensor(kind, [n, c, side, side] + [side] * deep, strides + [1] * deep)

        settings = self.make(CONVOLUTION, _102=[1, 1, 1], _103=[stride, stride] + [1] * deep,
                             _105=[pad, pad] + [0] * deep)
        number, at = OPERATIONS[operation]
        parts = settings, tensor(k, c // groups, r), tensor(n, c, side), tensor(n, k, out)
        op = self.make(number, **{f"_{at + i}": part for i, part in enumerate(parts)})
        return self.make(HEURISTICS, _201=self.make(GRAPH, _801=[op]))

    def taken(self, of, most):
        """How many plans there are for a program that asks for so many, and configurations."""
        configs = [self.make(CONFIG) for _ in range(most)]
        array = (ctypes.c_void_p * most)(*(c.value for c in configs))
        count = self.get(of, 202, array if most else None)
        return count, configs[:min(most, count)]

    def plans(self, words):
        """(bytes, notes) of the first plan of each kind, then of the largest ones."""
        of = self.heuristics(words)
        found, notes = [], (ctypes.c_int * 31)()
        for config in self.taken(of, self.taken(of, 0)[0])[1]:
            count = self.get(config, 1303, notes)
            found.append((self.bytes_of(config), sum(1 << note for note in notes[:count])))
        first = max(1, len(found) // 2)
        return found[:first], found[first:]

    def first(self, words):
        found = self.plans(words)[0]
        self.check_release()
        return next(size for size, notes in found if words[3] == "any" or not notes & 1)

    # ---- planners

    def write_script(self, version, known, text):
        script = os.path.join(self.folder, "planner")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nread card\necho {version} {known}\n{text}\n")
        os.chmod(script, 0o700)
        os.environ["CUFRAG_PRETEND_PLANNER"] = f"{script}\nscript\nlibrary"

    def plan_for(self, card):
        found = [p for folder in CUDNN for p in glob.glob(folder + "/libcudnn.so.9")]
        if not found:
            raise Skipped("no cuDNN")
        cufrag_stubs.no_card(self.folder, [])
        planner = os.path.join(SOURCES, "cufrag_planner.py")
        os.environ.update(CUFRAG_PRETEND=card, CUFRAG_PRETEND_PLANNER_PATH=self.folder,
                          CUFRAG_PRETEND_PLANNER=f"{sys.executable}\n{planner}\n{found[0]}")

    def check_release(self):
        if not cufrag_known.Known().is_of(self.planner()):
            raise Skipped("cuDNN of another release")

    def planner(self):
        return ctypes.c_int(self.library.find("conv_planner")()).value

    def measured(self):
        """As an H200 with cuDNN 9.19 took them: copies alone, with the partial sums of a whole
        card, cuBLASLt's products of points, single channels, counters of sums that are split, and
        transforms. Those in the other file are expected to come out wrong."""
        lines, missed = (open(os.path.join(HERE, name), encoding="ascii").read().splitlines()[1:]
                         for name in ("convolutions.csv", "convolutions_missed.csv"))
        wrong = []
        for line in lines:
            *words, size, off = line.split(",")
            if abs(self.first(words) - int(size)) > int(off):
                wrong.append(line)
        assert sorted(wrong) == sorted(missed), set(wrong) ^ set(missed)
        assert len(missed) <= MISSED_MOST

    # ---- attention

    def attention(self, how, images, heads, shared, channels, queries, keys):
        """One operation or, with a mask, two matrix products around a softmax."""
        def halves(heads, rows, columns):
            return self.tensor(2, [images, heads, rows, columns])

        q, k = halves(heads * shared, queries, channels), halves(heads, keys, channels)
        if how in ("plain", "training"):
            stats = {"_2804": q} if how == "training" else {}
            ops = [self.make(ATTENTION, _2800=q, _2801=k, _2802=k, **stats)]
        else:
            index = self.make(POINTWISE_SETTINGS, _0=GEN_INDEX)
            scores = halves(heads * shared, queries, keys)
            ops = [self.make(PRODUCT, _1520=q, _1521=halves(heads, channels, keys)),
                   *([self.make(POINTWISE, _750=index)] if how == "causal" else []),
                   self.make(PRODUCT, _1520=scores, _1521=k)]
        return self.bytes_of(self.make(CONFIG, _300=self.make(GRAPH, _801=ops)))

    def answer(self, line, _):
        word, *rest = (a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line))
        if word == "card":
            os.environ["CUFRAG_PRETEND"] = rest[0]
        elif word == "script":
            self.write_script(*rest)
        elif word == "own":
            self.plan_for(rest[0])
        elif word == "measured":
            self.measured()
        elif word == "planner":
            return str(self.planner())
        elif word == "plans":
            return " ".join("%d/%d" % plan for plan in self.plans(rest)[0])
        elif word == "first":
            size = self.first(rest)
            return str(size) if "above" not in rest else "yes" if size > int(rest[-1]) else "no"
        elif word == "largest":
            found = max(size for some in self.plans(rest) for size, notes in some if not notes)
            self.check_release()
            return str(found)
        elif word == "taken":
            count, configs = self.taken(self.heuristics(rest[1:]), int(rest[0]))
            return " ".join(map(str, (count, *map(self.bytes_of, configs))))
        elif word == "attention":
            return str(self.bytes_of(self.make(CONFIG)) if rest[0] == "none" else
                       self.attention(rest[0], *map(int, rest[1:])))
        return ""


def one(body):
    with tempfile.TemporaryDirectory() as folder:
        return list(in_lines(Plans.answer)(Plans(folder), body))


if __name__ == "__main__":
    main("", cases(os.path.join(HERE, "plans.cases"), lambda _, body: in_a_process(one, body)()))
