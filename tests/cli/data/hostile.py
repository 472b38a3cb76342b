#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes one hostile snapshot as a pickle to standard output: hostile.py NAME.
import pickle
import sys

MIB = 1 << 20


def entry(action, addr, size, time, stream=0):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time, "frames": []}


def segment(addr, size, device=0, blocks=None):
    live = {"size": size, "requested_size": size, "state": "active_allocated"}
    return {"device": device, "address": addr, "total_size": size, "stream": 0, "segment_type": "large",
            "blocks": blocks if blocks is not None else [live]}


def snapshot(segments=(), traces=((),), conf=None, marks=()):
    settings = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf is not None else {}
    return {"segments": list(segments), "device_traces": [list(t) for t in traces],
            "allocator_settings": settings, "external_annotations": list(marks)}


def gone(base, size):
    """The segment of a pair at the end: one free block."""
    return segment(base, size, blocks=[{"size": size, "requested_size": 0, "state": "inactive"}])


def with_pair(base=0x7E0000000000, segments=(), **others):
    return snapshot(list(segments) + [gone(base, 2 * MIB)], [pair(base, 2 * MIB, 1000)], **others)


def pair(base, size, time):
    return [entry("segment_alloc", base, size, time), entry("alloc", base, size, time + 1),
            entry("free_requested", base, size, time + 2), entry("free_completed", base, size, time + 3)]


def shared_name():
    """Frames that share one long name: without a cache, each costs a hash of it."""
    name = "n" * 65536
    frames = [{"name": name, "filename": name, "line": i} for i in range(200000)]
    first = pair(0x7F0000000000, 2 * MIB, 1000)
    first[1]["frames"] = frames
    return snapshot([gone(0x7F0000000000, 2 * MIB)], [first])


def devices():
    """Annotations that every device would get."""
    marks = [{"name": "step", "device": 0, "stage": stage, "time_us": 2000 + i}
             for i in range(20000) for stage in ("START", "END")]
    at = [0x7F0000000000 + d * 64 * MIB for d in range(4096)]
    return snapshot([{**gone(a, 2 * MIB), "device": d} for d, a in enumerate(at)], [pair(a, 2 * MIB, 1000) for a in at],
                    marks=marks)


def streams():
    trace = []
    segments = []
    for i in range(65534):
        trace += [entry("segment_alloc", 0x7F0000000000 + i * 2 * MIB, 2 * MIB, 1000 + i, 4096 + i),
                  entry("alloc", 0x7F0000000000 + i * 2 * MIB, 4096, 1000 + i, 4096 + i)]
        blocks = [{"size": 4096, "requested_size": 4096, "state": "active_allocated"},
                  {"size": 2 * MIB - 4096, "requested_size": 0, "state": "inactive"}]
        segments += [{**segment(0x7F0000000000 + i * 2 * MIB, 2 * MIB, blocks=blocks), "stream": 4096 + i,
                      "segment_type": "small"}]
    return snapshot(segments, [trace])


def history():
    """Blocks that share one history of many items."""
    newest = {"k%d" % i: i for i in range(100000)}
    newest["real_size"] = 512
    shared = [newest]
    size = 512
    count = 50000
    blocks = [{"size": size, "requested_size": size, "state": "active_allocated", "history": shared}
              for _ in range(count)]
    return snapshot(segments=[segment(0x7F0000000000, size * count, blocks=blocks)])


BASE = 0x7F0000000000
CASES = {
    "names": shared_name,
    "devices": devices,
    "streams": streams,
    "history": history,
    "seg_huge": lambda: with_pair(segments=[segment(BASE, 1 << 50)]),
    "seg_wrap": lambda: with_pair(segments=[segment((1 << 63) - 4 * MIB, 1 << 62)]),
    "seg_addr0": lambda: with_pair(segments=[segment(0, 2 * MIB)]),
    "seg_twice": lambda: with_pair(segments=[segment(BASE, 4 * MIB), segment(BASE, 4 * MIB)]),
    "device_minus": lambda: with_pair(segments=[segment(BASE, 2 * MIB, device=-1)]),
    "conf_garbage": lambda: with_pair(conf="\x1b]0;pwned\x07\nfoo:\x1b[31m\u202ebar\x9b"),
    "shellquote": lambda: with_pair(conf="max_split_size_mb:64,'; touch pwned; '"),
}

if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(CASES[sys.argv[1]](), protocol=4))
