# SPDX-License-Identifier: Apache-2.0
"""What the user's own cuDNN would take for a convolution: a process beside the program.

    cufrag_planner.py LIBCUDNN [VERSION]    (src/pretend/libraries/cudnn_plan.c)

cuDNN 9.8 and newer plan for a card that is only described ("deviceless" in its documents). The
first line of input is that description (card_of). Its answer is the library's version and 1 where
cufrag_known.py knows what a card adds to its plans, else 0. Each other line is a convolution, in
numbers:

    OPERATION TYPE DIMS  x: dims strides  w: dims strides  y: dims strides  padding strides dilation

and is answered by pairs "BYTES NOTES": of all plans that cuDNN proposes, in its order, the first of
those that use tensor cores or not and are deterministic or not (NOTES: bits 0 and 4). No pair: no
plan. With "all" before it, the pairs are the largest of each kind: what cudnn.benchmark takes to
try them.

VERSION: what PyTorch was built with. A library elsewhere has to be of the same release.

Where the library is of the release that cufrag_known.py knows, and the card of compute capability
9, the bytes are those of a card. Without the driver's library, cuDNN leaves out its kernels for
filters of single channels. So it finds one without a card (cufrag_stubs.py).
"""
import ctypes
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python -I leaves it out
from cufrag_known import CLUSTER_M, CLUSTER_N, Known, Plan, is_streamk
from cufrag_transforms import transforms
from cufrag_trees import DATA, FILTER, FORWARD

# cudnnBackendDescriptorType_t
CONVOLUTION, ENGINE, CONFIG, HEURISTICS, KNOB, GRAPH, TENSOR, DEVICE = 1, 2, 3, 4, 7, 15, 17, 38
# operation -> attributes x, w, y, convolution, alpha, beta
PARTS = {FORWARD: (704, 703, 705, 702, 700, 701), FILTER: (716, 715, 717, 714, 712, 713), DATA: (710, 709, 711, 708, 706, 707)}
# cudnnBackendAttributeType_t -> what it is made of
FORMS = {1: ctypes.c_int, 3: ctypes.c_int64, 4: ctypes.c_float, 7: ctypes.c_int, 8: ctypes.c_int,
         9: ctypes.c_int, 11: ctypes.c_int, 15: ctypes.c_void_p, 23: ctypes.c_int32}
LONG, FLOAT, KNOB_TYPE, NOTE, DESCRIPTOR, INT, CHAR = 3, 4, 9, 11, 15, 23, 24
TENSOR_CORES, ROUNDS_INPUTS, NOT_DETERMINISTIC = 0, 1, 4  # notes; PyTorch refuses the second
INSTANT, FALLBACK, THOROUGH = 0, 2, 1  # what PyTorch asks for; instead; a longer list
# Engines of the longer list that show that all Fourier transforms, which the shorter one lacks, are
# judged too slow (13 of 40 sizes without them, one of 237 with them)
TOO_SLOW = {FORWARD: {38, 46, 48}, DATA: {58, 76}}
FOLDS = 58  # the engine that folds strides of a data pass into channels


class Refused(Exception):
    pass


def card_of(line):
    """A card as cuDNN describes one."""
    *numbers, name = line.strip().split(" ", 8)
    sms, shared, blocks, threads, total, clock, l2, capability = map(int, numbers)
    return {"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
            "regsPerBlock": 65536, "multiProcessorCount": sms, "warpSize": 32,
            "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": shared,
            "reservedSharedMemoryPerBlock": 1024 if capability >= 800 else 0,
            "maxRegistersPerSM": 65536, "maxCtasPerSM": blocks, "maxThreadsPerBlock": 1024,
            "maxThreadsPerSM": threads, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
            "totalGlobalMem": total, "smClockRateKHz": clock, "memClockRateKHz": 3201000,
            "l2CacheSize": l2, "cudaDeviceId": 0, "deviceVer": capability, "driverVer": 13000,
            "deviceName": name}


class Planner:
    def __init__(self, path, card):
        self.lib = ctypes.CDLL(path)
        head = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        self.lib.cudnnBackendSetAttribute.argtypes = head + [ctypes.c_void_p]
        self.lib.cudnnBackendGetAttribute.argtypes = head + [ctypes.c_void_p] * 2
        self.made = []
        self.sms = card["multiProcessorCount"]
        self.version = self.lib.cudnnGetVersion()
        self.known = self.knowledge(card["deviceVer"])
        self.card = self.make(DEVICE)
        text = json.dumps(card).encode()
        self.check(self.lib.cudnnBackendSetAttribute(self.card, 2702, CHAR, len(text), text))
        self.finish(self.card)
        self.made.clear()

    def knowledge(self, capability):
        """None: of another release, or of other cards."""
        known = Known()
        return known if capability // 100 == 9 and known.is_of(self.version) else None

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
        self.put(c, 100, 1, q.data_type if q.data_type == 1 else 0)  # of sums
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
                kinds = TENSOR_CORES, NOT_DETERMINISTIC
                yield config, number, sum(1 << n for n in kinds if n in notes)

    def plans(self, q, graph):
        """PyTorch asks for another list if the first has only tensor cores in single precision."""
        kinds = set()
        for plan in self.usable(self.proposals(graph, INSTANT)):
            kinds.add(plan[2])
            yield plan
        if not kinds or q.data_type == 0 and all(kind >> TENSOR_CORES & 1 for kind in kinds):
            yield from self.usable(self.proposals(graph, FALLBACK))

    def proposed(self, q, graph):
        """The first plan of each kind."""
        plans = {}
        for config, engine, kind in self.plans(q, graph):
            if kind not in plans:
                plans[kind] = self.plan_of(graph, config, engine, kind)
            if len(plans) == 4:
                break
        return plans

    def answer(self, q):
        plans = self.proposed(q, self.graph(q))
        found = self.known.on_card(q, plans, self.sms) if self.known else {kind: plan.size for kind, plan in plans.items()}
        return " ".join("%d %d" % (size, kind) for kind, size in found.items())

    def largest(self, q):
        """Of each kind, as cudnn.benchmark tries them: all proposals and those of the fallback."""
        graph, most, folded = self.graph(q), {}, False
        instant = self.proposals(graph, INSTANT)
        for config, engine, mask in self.usable(instant + self.proposals(graph, FALLBACK)):
            plan = self.plan_of(graph, config, engine, mask)
            size = self.known.size_of(q, plan, self.sms) if self.known else plan.size
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

    def plan_of(self, graph, config, engine, kind):
        plan = Plan(kind, engine, self.knobs_of(config), self.get(config, 303, LONG, 1)[0])
        return plan._replace(size=self.on_one_cluster(graph, plan)) if self.known and is_streamk(plan) else plan

    def on_one_cluster(self, graph, plan):
        """Bytes without partial sums: one cluster shares no tile."""
        try:
            return self.get(self.small(graph, plan.engine, plan.knobs), 303, LONG, 1)[0]
        except Refused:
            return plan.size

    def small(self, graph, index, knobs):
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
        return self.finish(config)


class Question:
    def __init__(self, numbers):
        numbers = list(numbers)
        self.operation, self.data_type, self.dims = numbers[:3]
        d = self.dims
        parts = [numbers[at:at + d] for at in range(3, 3 + 6 * d, d)]
        self.x, self.w, self.y = parts[:2], parts[2:4], parts[4:]
        self.pads, self.strides, self.dilations = (numbers[at:at + d - 2] for at in range(3 + 6 * d, 3 * (3 * d - 1), d - 2))


def is_the_programs(path, version, built):
    return os.path.dirname(path).endswith(("nvidia/cudnn/lib", "torch/lib")) or not built or built // 100 == version // 100


def main():
    try:
        planner = Planner(sys.argv[1], card_of(sys.stdin.readline()))
    except (OSError, Refused, AttributeError, ValueError):
        return  # no cuDNN, or an older one
    if not is_the_programs(sys.argv[1], planner.version, int((sys.argv[2:] or [0])[0])):
        return
    print(planner.version, int(planner.known is not None), flush=True)
    for line in sys.stdin:
        try:
            ask = planner.largest if line.startswith("all") else planner.answer
            text = ask(Question(int(n) for n in line.replace("all", "").split()))
        except Refused:
            text = ""
        planner.clear()
        print(text, flush=True)


if __name__ == "__main__":
    main()
