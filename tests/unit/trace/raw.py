#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From recorded entries to events, and what is settled of them, in TAP: raw.py BUILD/tests/drivers

The cases have a sequence of entries a line: KIND ADDRESS BYTES, with stream=, pool= and time= where
they are not 0, none and 100; "final ADDRESS BYTES" and behind it "block ADDRESS BYTES REQUESTED
STATE" for a segment and its blocks at the end, "nothing left" where there are none, "mark TIME
NAME" (with "end": of a step). Each becomes a snapshot of PyTorch, which the reader reads."""
import os
import pickle
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from driven import in_lines, put, said, total, trace_main  # noqa: E402

PLACES = {"S0": 0x700000000000, "S1": 0x710000000000, "S2": 0x720000000000, "R": 0x302000000, "P": 20 << 20}
STREAMS, POOLS = (0, 900, 500, 700), ((0, 0), (3, 0), (0, 7))
ACTIONS = {"requested": ["free_requested"], "completed": ["free_completed"], "free": ["free_requested", "free_completed"]}
STATES = {"live": "active_allocated", "waiting": "active_pending_free", "free": "inactive"}


def signed(value):
    return value - (value >> 63 << 64)


def snapshot(text, conf=None):
    entries, marks, segments, listed = [], [], [], "nothing left" in text
    for item in text.split(", ") if text != "nothing" else ():
        kind, *words = item.split()
        more = dict(word.split("=") for word in words if "=" in word)
        numbers = [signed(total(word, PLACES.get)) for word in words if total(word, PLACES.get) is not None]
        if kind == "final":
            segments.append({"device": 0, "address": numbers[0], "total_size": numbers[1], "stream": 0, "blocks": [],
                             "segment_type": "small" if "small" in words else "large", "is_expandable": "expandable" in words,
                             "segment_pool_id": POOLS[int(more.get("pool", 0))]})
        elif kind == "block":
            segments[-1]["blocks"].append({"address": numbers[0], "size": numbers[1], "requested_size": numbers[2], "state": STATES[words[-1]]})
        elif kind == "mark":
            step = "Optimizer.step#" * (len(words) > 2)
            marks.append({"name": step + words[1], "stage": "END" if "end" in words else "START", "device": 0, "time_us": numbers[0]})
        elif kind != "nothing":
            at = {"oom": "device_free"}.get(kind, "addr")
            for action in ACTIONS.get(kind, [kind]):
                entries.append({"action": action, at: numbers[0], "size": numbers[1], "time_us": total(more.get("time", "100"), None),
                                "stream": STREAMS[int(more.get("stream", 0))]})
                if "pool" in more:
                    entries[-1]["pool_id"] = POOLS[int(more["pool"])]
    document = {"device_traces": [entries], "external_annotations": marks}
    document.update({"segments": segments} if segments or listed else {})
    document.update({"allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": conf}} if conf is not None else {})
    put(pickle.dumps(document, 4))


EVENT = re.compile(r"(\t?)(\w+)(?: '(?:Optimizer.step#)?(\w+)'| #(\d+))?(?: bytes (\d+))?(?: stream (\d+))?(?: pool (\d+))?"
                   r"(?: time (\d+))?(.*?)(?: @(0x\w+))?")


def events(text):
    """In short: evidence in brackets, events with slot, .stream, /pool, ~time."""
    for line in text.split("\n"):
        seen, kind, name, slot, size, stream, pool, time, flags, at = EVENT.fullmatch(line).groups()
        if seen:
            figures = {"oom": [int(at, 16), size], "snapshot": [size or 0]}.get(kind, [])
            yield "[%s]" % " ".join(map(str, [kind, *figures]))
        else:
            size = "(%s)" % size if kind == "refused" else ""
            yield kind + size + "#" * bool(name or slot) + (name or slot or "") + "".join(m + v for m, v in zip("./~", (stream, pool, time)) if v) + (flags and "(%s)" % flags[1:])


def read(driver, call, conf=None):
    snapshot(call, conf)
    return said(driver, "snapshot").replace("'snapshot': ", "")


def answer_build(driver, call, _):
    text = read(driver, call)
    if text.startswith("at "):
        return text
    sizes, (head, *lines) = {}, text[text.index("device 0:"):].split("\n")
    for kind, slot, size in re.findall(r"(?m)^(alloc|free|free_completed) #(\d+) bytes (\d+)", text):
        assert sizes.setdefault(slot, size) == size if kind == "alloc" else sizes.pop(slot) == size, text  # a free repeats its request's
    shown = [line for line in lines if not re.match("initial |final ", line)]
    return " ".join([*events("\n".join(shown))] * bool(shown) + ["=", re.sub("device 0:|(recorded|truncated|uncertain) ?\\d* ?", "", head).strip()])


def answer_rewind(driver, call, _):
    """The blocks that were live at the start; where their segments are known, with their sizes."""
    text = read(driver, call)
    if text.startswith("at "):
        return text
    sizes = dict(re.findall(r"(?m)^initial block #\d+ @(\w+) bytes (\d+)", text))
    waiting = re.findall(r"(?m)^free_requested #(\d+)", text)
    blocks = [f"{at} holds {size}" + (f" in {sizes[at]}" if at in sizes else "") + " (waiting)" * (slot in waiting)
              for slot, size, at in re.findall(r"(?m)^alloc #(\d+) bytes (\d+).* initial @(\w+)$", text)]
    uncertain = re.search(r"^device.* uncertain (\d+)", text, re.M)
    return ", ".join([*blocks, f"{text.count('initial segment')} segments", f"{uncertain[1] if uncertain else 0} uncertain"])


def answer_resolve(driver, call, _):
    """What is settled, and what was found on the way."""
    read(driver, call.removeprefix("known: "))
    settled, _, text = said(driver, "verify", "0", "0", *["known"] * call.startswith("known: ")).partition("\n")
    more = [f"initial block of {size}" for size in re.findall(r"(?m)^initial block .* bytes (\d+)", text)]
    more += [f"uncertain {n}" for n in re.findall(r"(?m)^device.* uncertain (\d+)", text)]
    pools = re.findall(r"\((\d+), \d+[^)]*\)", re.search("(?m)^device.*", text)[0])
    if pools:
        more += [f"alloc of pool {pool or 0}" for pool in re.findall(r"(?m)^alloc #\d+ bytes \d+(?: pool (\d+))?", text)]
        more += [f"pool {i} {'found' if int(pool) == 2**64 - 1 else 'named'}" for i, pool in enumerate(pools) if i]
    return ", ".join([settled, *more])


def answer_late(driver, call, _):
    options, _, entries = call.partition(" | ")
    release, *options = options.split()
    options = dict(word.split("=") for word in options)
    read(driver, entries, options.get("conf", ""))
    major, minor = release.split(".")
    return said(driver, "verify", major + minor.zfill(2), str(total(options.get("limit", "0"), None))).partition("\n")[0]


FILES = {"build": answer_build, "rewind": answer_rewind, "../verify/resolve": answer_resolve, "../verify/late": answer_late}

if __name__ == "__main__":
    trace_main(globals(), {os.path.join(HERE, f + ".cases"): in_lines(how) for f, how in FILES.items()})
