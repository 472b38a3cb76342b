#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Histories as .cft, merged, repeated, rewound, in TAP: histories.py BUILD/tests/drivers

What goes into a .cft comes out: test_trace.c does that with whatever it reads. cft.cases has what
is hostile or unsound: "device WORD VALUE" changes a number of the file, "cards TEXT" the text of
the cards, "FIELD INDEX VALUE, …" the trace that is to be written."""
import glob
import json
import os
import pickle
import random
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from driven import (COLUMNS, Driver, Skipped, cufrag, got, in_lines, made, program, put,  # noqa: E402
                    read_rows, said, total, trace_main, unescape, well)

K, M, T0 = 1 << 10, 1 << 20, 1795186186043381
S0, S1, S2 = 0x7f0000000000, 0x7f1000000000, 0x7f2000000000


def entry(action, addr, size, stream, time, *lines):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": T0 + time,
            "frames": [{"filename": "train.py", "line": n, "name": f"f{n}"} for n in lines]}


def segment(addr, size, kind, stream, pool, *blocks):
    names = ("address", "size", "requested_size", "state")
    return {"device": 3, "address": addr, "total_size": size, "stream": stream, "segment_type": kind,
            "segment_pool_id": pool, "is_expandable": False, "blocks": [dict(zip(names, b)) for b in blocks]}


def marked(line, names):
    """A request and marks of these names."""
    return {"segments": [], "device_traces": [[entry("alloc", S0, 1, 0, 0, line)]],
            "external_annotations": [{"name": name, "stage": "START", "device": 0, "time_us": T0 + i}
                                     for i, name in enumerate(names, line)]}


# a history that began late: two devices, every kind of event and of evidence
SAMPLE = {
    "segments": [
        segment(S0, 2 * M, "small", 0, (0, 0), (S0, K, 1000, "active_allocated"),
                (S0 + K, 2 * M - K, 0, "inactive")),
        segment(S1, 20 * M, "large", 7, (0, 9), (S1, 3 * M, 3 * M, "active_pending_free"),
                (S1 + 3 * M, 17 * M, 0, "inactive"))],
    "device_traces": [[], [], [], [
        entry("free_requested", S1 + 3 * M, 2 * M, 7, 0),
        entry("alloc", S0 + K, 77, 0, 7, 12, 40000),
        entry("segment_alloc", S2, 32 * M, 0, 300),
        entry("alloc", S2, 30 * M, 0, 300, 12),
        {"action": "oom", "device_free": 12345, "size": 1 << 40, "stream": 7, "time_us": T0 + 301},
        entry("free_completed", S1 + 3 * M, 2 * M, 7, 302),
        entry("free_requested", S1, 3 * M, 7, 303),
        entry("free_requested", S0 + K, 77, 0, 1 << 30),
        entry("free_completed", S0 + K, 77, 0, 1 << 30),
        entry("snapshot", 0, 99, 0, (1 << 30) + 1),
        entry("free_requested", S2, 30 * M, 0, (1 << 30) + 254),
        entry("free_completed", S2, 30 * M, 0, (1 << 30) + 254),
        entry("segment_free", S2, 32 * M, 0, (1 << 30) + 255)],
        [], [entry("alloc", S0, 1, 0, 5), entry("free_completed", S0, 1, 0, 6)]],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128", "max_split_size": 128 * M,
                           "garbage_collection_threshold": 0.6, "expandable_segments": False,
                           "roundup_power2_divisions": {"1": 1, "2": 2, "4": 4, "8": 8}},
    "external_annotations": [{"name": "Optimizer.step#AdamW.step", "stage": s, "device": 0, "time_us": T0 + t}
                             for s, t in (("START", 299), ("END", 304))],
}


QUICK, NIGHTLY = (bool(os.environ.get("FRAG_TEST_" + kind)) for kind in ("QUICK", "NIGHTLY"))


def rounds(usual, nightly):
    return nightly if NIGHTLY else usual


def sample(driver):
    """The image of SAMPLE, which is read."""
    put(pickle.dumps(SAMPLE, 4))
    well(said(driver, "read"))
    assert said(driver, "cft", "input") == ""
    return got()


# ---- .cft ------------------------

HEAD = struct.Struct("<BBHIIIQ")  # of a block: type, 0, device, count, bytes behind it, 0, checksum
DEVICE, EVENTS = 6, 9
NUMBERS = ("ordinal events slots streams pools evidence addrs seen segments blocks initial_segments initial_blocks "
           "recorded truncated uncertain").split()


def blocks(image):
    """(type, begin, end) of each."""
    at = 16
    while at < len(image):
        kind, _, _, _, length, _, _ = HEAD.unpack_from(image, at)
        yield kind, at, at + HEAD.size + length
        at += HEAD.size + length


def refused(driver, image, signed=True):
    """The message; the checksums are made good first."""
    put(bytes(image))
    if signed:
        driver.ask("sign")
    answer = said(driver, "read")
    assert re.match(r"at \d+: ", answer), answer
    return answer


def accepted(driver, image):
    put(image)
    driver.ask("sign")
    well(said(driver, "read"))


def with_number(image, word, change):
    """A number of the first device is written as change(number)."""
    _, begin, end = next(b for b in blocks(image) if b[0] == DEVICE)
    count, width = len(NUMBERS), image[begin + HEAD.size + 1]
    rest = begin + HEAD.size + 12 + count * width
    planes = image[rest - count * width:rest]
    numbers = [sum(planes[k * count + i] << 8 * k for k in range(width)) for i in range(count)]
    numbers[NUMBERS.index(word)] = change(numbers[NUMBERS.index(word)])
    column = struct.pack("<BBBBII", 0, 8, 1, 0, count, 8 * count)
    column += bytes(n >> 8 * k & 255 for k in range(8) for n in numbers)
    head = list(HEAD.unpack_from(image, begin))
    head[4] = len(column) + end - rest
    return image[:begin] + HEAD.pack(*head) + column + image[rest:]


def answer_cft(driver, call, _):
    image, (what, _, rest) = sample(driver), call.partition(" ")
    if what == "device":
        word, value = rest.split()
        accepted(driver, with_number(image, word, lambda n: n))
        lie = with_number(image, word, lambda n: n - 1 if value == "less" else int(value))
        answer = refused(driver, lie)
        return re.sub(r"^at \d+: |(?<=at byte )\d+", "", answer)
    if what == "cards":
        put(unescape(rest))
        return said(driver, "cards")
    for change in call.split(", "):
        field, index, value = change.split()
        driver.ask("set", field, index, total(value, {}.get))
    answer = said(driver, "cft", "other")
    if answer:
        assert not os.path.exists(os.path.join(Driver.folder, "other"))
        return answer
    os.remove(os.path.join(Driver.folder, "other"))
    return "kept" + said(driver, "round")


def test_damage(driver):
    image = sample(driver)
    for at in range(0, len(image), rounds(7, 1)):
        refused(driver, [*image[:at], image[at] ^ 1 << at % 8, *image[at + 1:]], False)
        refused(driver, image[:at], False)
    assert refused(driver, image + b"\0", False).startswith(f"at {len(image)}: ")
    assert "version 6" in refused(driver, image[:8] + b"\6" + image[9:])
    # a recording that grows, whose blocks are others
    assert "block 0 at byte 16: no" in refused(driver, image[:8] + b"\4" + image[9:])
    sample(driver)
    driver.ask("cft-short")


def test_blocks_lost_and_doubled(driver):
    image = sample(driver)
    for _, begin, end in blocks(image):
        refused(driver, image[:end] + image[begin:])
        refused(driver, image[:begin] + image[end:])
    accepted(driver, image)


def test_foreign_events(driver):
    """They are right elsewhere: other slots, frees of what is not live."""
    images = []
    for seed in (5, 6):
        read_rows(driver, made(seed, 70000))
        driver.ask("cft", "input")
        images.append(got())
    (_, begin, end), other = [[b for b in blocks(i) if b[0] == EVENTS][1] for i in images]
    answer = refused(driver, images[0][:begin] + images[1][other[1]:other[2]] + images[0][end:])
    assert int(re.match(r"at (\d+)", answer)[1]) > begin


def test_random(driver):
    """With evidence, and with slots that no reader gives; blocks of a file hold 65536 events."""
    for count in rounds((1, 65537), (1, 300, 65536, 65537, 140000)):
        read_rows(driver, made(count, count))
        driver.ask("reverse")
        driver.ask("round")
        cufrag("export", "input", "--policy", "pytorch", "--to", "memory_viz", "-o", "viz")
        put(got("viz"))
        well(said(driver, "read"))
        driver.ask("round")


def test_many_codes(driver):
    """More kinds of event than a block has codes for: it is cut, not refused."""
    read_rows(driver, made(1, 4000))
    driver.ask_many([("set", "event.flags", i, i & 0xfe) for i in range(4000)])
    driver.ask("round")


def test_long_texts(driver):
    names = [*("x" * 3**i for i in range(11)), *map(str, range(70000)), "a\u00e9"]
    put(pickle.dumps(marked(0, names), 4))
    assert re.findall("mark '(.*?)'", well(said(driver, "read"))) == [
        n.encode().decode("latin-1") for n in names]
    driver.ask("round")


def test_cards(driver):
    for count in (1, 2):
        cards = [{"ordinal": d, "name": "x" * 63, "total_bytes": 85017493504, "context_bytes": 12,
                  "limit_fraction": 0.3} for d in (5, 3)[:count]]
        put(json.dumps({"cufrag_meta": 1, "devices": cards}).encode(), "input.meta.json")
        put(pickle.dumps(SAMPLE, 4))
        assert well(said(driver, "read")).count("card 'xx") == count
    os.remove(os.path.join(Driver.folder, "input.meta.json"))


def test_one_device(driver):
    sample(driver)
    assert re.findall(r"(?m)^device (\d+)", said(driver, "read", "device=5")) == ["5"]
    assert said(driver, "read", "device=4").startswith("at ")
    for wrong in ("device=", "device=-5", "devise=5"):
        assert said(driver, "read", wrong).startswith("exit 2"), wrong


def test_written_or_absent(driver):
    sample(driver)
    for path in ("no/such/folder.cft", "/dev/full"):
        assert said(driver, "cft", path).startswith("exit 5, ")


# ---- merged ------------------------


def moved(value, us):
    """All its times."""
    if isinstance(value, dict):
        return {k: v + us if k == "time_us" else moved(v, us) for k, v in value.items()}
    return [moved(v, us) for v in value] if isinstance(value, list) else value


def devices(text, us=0):
    """(ordinal, the rest) of each, so much later; stacks by their texts."""
    stacks = dict(re.findall(r"(?m)^stack (\d+): (.*)$", text))
    text = re.sub(r" stack (\d+)", lambda m: " " + stacks[m[1]], text)
    text = re.sub(r"(?<= time )\d+", lambda m: str(int(m[0]) + us), text)
    return re.findall(r"(?ms)^device (\d+): (.*?)(?=^device|\Z)", text + "\n")


def merged(driver, *parts):
    """(name, text, devices); each part is (name, history, microseconds later)."""
    alone = []
    for name, history, us in parts:
        put(pickle.dumps(moved(history, us), 4))
        os.replace(os.path.join(Driver.folder, "input"), os.path.join(Driver.folder, name))
    name, _, text = said(driver, "merge", *(p[0] for p in parts)).partition("\n")
    for file, _, us in parts:
        put(got(file))
        alone += devices(well(said(driver, "read")), us)
    # one at the moment 0 has no word for it
    assert [d[1].replace(f" time {us}", "") for d in devices(text) for us in (3000,)] == [
        d[1].replace(" time 3000", "") for d in alone], (text, alone)
    return name, text, [int(d[0]) for d in devices(text)]


def test_merge(driver):
    # the same texts; 3 and 5 twice: numbered anew
    name, text, ordinals = merged(driver, ("job.rank0", SAMPLE, 3000), ("job.rank1", SAMPLE, 0))
    assert (name, ordinals, text.count("\nstack")) == ("job", [0, 1, 2, 3], 2), text
    assert f"start {T0}" in text and "max_split_size_mb:128" in text
    # others, on other devices
    name, text, ordinals = merged(driver, ("a", marked(1, ["epoch"]), 0), ("b", SAMPLE, 3000))
    assert (name, ordinals, text.count("\nstack")) == ("merged", [0, 3, 5], 3), text
    for name, us in (("a", 0), ("b", 1 << 41)):
        put(pickle.dumps(moved(SAMPLE, us), 4), name)
    assert said(driver, "merge", "a", "b").startswith("at ")


# ---- repeated ------------------------


def told(body):
    """[(kind, slot, bytes, the rest, time)] of a device."""
    events = []
    for line in body.split("\n"):
        found = re.match(r"(alloc|free\w*) #(\d+)(?: bytes (\d+))?(.*)", line)
        if found:
            time = re.search(r" time (\d+)", line)
            events.append((found[1], int(found[2]), int(found[3] or 0),
                           re.sub(r" (time|stack|@).*", "", found[4]), int(time[1]) if time else 0))
    return events


def state(events):
    """(what is live at the end, the most bytes that ever were); slots are taken by the rule."""
    live, free, used, now, peak = {}, [], 0, 0, 0
    for kind, slot, size, rest, _ in events:
        if kind == "alloc":
            if free:
                assert slot == free.pop(), "another slot"
            else:
                assert slot == used, "a slot is left out"
                used += 1
            live[slot], now = [size, rest, ""], now + size
            peak = max(peak, now)
        elif kind == "free_requested":
            live[slot][2] = kind
        else:
            now -= live.pop(slot)[0]
            free.append(slot)
    return sorted(map(tuple, live.values())), peak


def repeated(driver, file, recorded, times, *options, void=False):
    """Requests are those of the recording with a stretch of them again and again; in the end the
    same is live. void: a block that was live at both ends of the stretch may be missing later."""
    requests = {}
    for n in times:
        cufrag("gen", "repeat", file, "--times", n, *options, "-o", "long.cft")
        put(got("long.cft"))
        text = well(said(driver, "read"))
        assert text.startswith("gen-repeat"), text[:100]
        for d, ((ordinal, body), (was, recorded_body)) in enumerate(zip(devices(text), recorded)):
            assert ordinal == was
            before, after = told(recorded_body), told(body)
            if n == 1:
                assert after == before
            (live, peak), (live_before, peak_before) = state(after), state(before)
            assert peak <= peak_before and all(live.count(b) <= live_before.count(b) for b in live)
            assert void or (live, peak) == (live_before, peak_before)
            moments = [e[4] for e in after]
            assert moments == sorted(moments) or sorted(before, key=lambda e: e[4]) != before
            once, got_ = ([e[2:4] for e in events if e[0] == "alloc"] for events in (before, after))
            if n > 1:
                more = (len(got_) - len(once)) // (n - 1)
                at = next((i for i, (a, b) in enumerate(zip(once, got_)) if a != b), len(once))
                assert got_ == once[:at] + got_[at:at + more] * (n - 1) + once[at:], (file, n)
                assert requests.setdefault(d, more) == more
                assert not more or got_[at:at + more] == once[at - more:at]


def recording(driver, path):
    with open(path, "rb") as file:
        put(file.read())
    cufrag("import", "input", "--no-evidence", "-o", "plain.cft")
    put(got("plain.cft"))
    return devices(well(said(driver, "read")))


def test_repeat_recorded(driver):
    for path in sorted(glob.glob("traces/*.cft") + glob.glob("tests/golden/recorded/*.cft")):
        if os.path.getsize(path) < rounds(12000, 100000):
            recorded = recording(driver, path)
            driver.ask("repeat-short")
            repeated(driver, "plain.cft", recorded, (1, 2, 3))


def test_repeat_steps(driver):
    recorded = recording(driver, "traces/gnn.default.cft")
    for steps in rounds(("1..1", "120..120"), ("1..1", "30..61", "120..120")):
        repeated(driver, "plain.cft", recorded, (1, 2, 3), "--steps", steps)


def test_repeat_random(driver):
    """Any stretch of any history: marks of steps, or others, in place of its trims."""
    rng = random.Random(1)
    for seed in range(1, rounds(5, 16)):
        rows, steps = made(seed, 400 + 37 * seed, odd=12), 0
        read_rows(driver, rows)
        for i, row in enumerate(rows):
            if row.startswith("trim"):
                flags = rng.choice((0, 12, 12, 12))
                steps += bool(flags)
                driver.ask_many([("set", "event.kind", i, 6), ("set", "event.flags", i, flags),
                                 ("set", "event.pool", i, 0), ("set", "event.stream", i, 0)])
        driver.ask("cft", "input")
        recorded = devices(well(said(driver, "read")))
        os.replace(os.path.join(Driver.folder, "input"), os.path.join(Driver.folder, "random.cft"))
        for first in range(min(steps, 3) + 1):
            options = ["--steps", f"{first}..{steps}"] if first else []
            repeated(driver, "random.cft", recorded, (1, 2, 4), *options, void=True)


def test_repeat_events(driver):
    """As many rounds as it takes, and no more."""
    recording(driver, "traces/modelpar.default.cft")

    def answer(*options):
        cufrag("gen", "repeat", "plain.cft", *options, "-o", "long.cft", "--json", "gen.json")
        return json.loads(got("gen.json"))

    long = answer("--events", 1000000)
    less = answer("--times", long["rounds_count"] - 1)
    assert long["events_count"] >= 1000000 > less["events_count"]
    assert answer("--events", 1)["rounds_count"] == 1


def test_memory_is_constant(driver):
    """Of 4.4 M and 8.8 M events. Shorter ones are read once, to be settled."""
    if QUICK:
        raise Skipped("long recordings")
    recording(driver, "traces/vision.default.cft")

    def peak_kib(*words):
        """By a process of its own: a child's peak is at least that of the process that started it."""
        script = ("import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)"
                  "\nprint(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        return int(subprocess.check_output([sys.executable, "-c", script, program(), *words], cwd=Driver.folder))

    few, many = ((peak_kib("gen", "repeat", "plain.cft", "--times", times, "-o", "long.cft"),
                  peak_kib("replay", "long.cft", "--stream", "--policy", "pytorch")) for times in ("44", "88"))
    assert max(many) < 40000 and many[0] < few[0] + 20000 and many[1] < few[1] + 20000, (few, many)


# ---- rewound ------------------------


def exported(rows, settings):
    """What PyTorch's allocator would have done, and its blocks: {address: (bytes, requested, state)}"""
    put("\n".join([COLUMNS, *rows, ""]).encode(), "log.csv")
    cufrag("export", "log.csv", "--policy", "pytorch" + settings, "--to", "memory_viz", "-o", "viz")
    viz = pickle.loads(got("viz"))
    return viz, {b["address"]: (b["size"], b["requested_size"], b["state"]) for s in viz["segments"]
                 for b in s["blocks"] if b["state"] != "inactive"}


def cut(driver, rows, at, settings):
    """Rewound, it has the segments and blocks that there were. Returns sizes that are wrong, and all."""
    before, blocks_before = exported(rows[:at], settings)
    viz, _ = exported(rows, settings)
    if "roundup" in settings:  # as PyTorch writes it
        viz["allocator_settings"]["roundup_power2_divisions"] = {str(1 << i): 4 for i in range(16)}
    entries = viz["device_traces"][0]
    done = len(before["device_traces"][0])
    for was, entry_ in zip(before["device_traces"][0], entries):
        assert all(was[k] == entry_[k] for k in ("action", "addr", "size") if k in was)
    viz["device_traces"][0] = entries[done + 1:]  # within an operation: it is possible
    put(pickle.dumps(viz, 4))
    well(said(driver, "read"))
    viz["device_traces"][0] = entries[done:]
    put(pickle.dumps(viz, 4))
    text = well(said(driver, "read"))
    found = re.findall(r"(?m)^initial segment @(\w+) bytes (\d+)(?:.*?( small)?)$", text)
    assert [(int(a, 16), int(b)) for a, b, _ in found] == sorted((s["address"], s["total_size"])
                                                                for s in before["segments"])
    if not settings:
        assert {int(a, 16) for a, _, small in found if small} == {
            s["address"] for s in before["segments"] if s["segment_type"] == "small"}
    found = re.findall(r"(?m)^initial block #\d+ @(\w+) bytes (\d+) requested (\d+)", text)
    assert {int(a, 16): int(r) for a, _, r in found} == {a: b[1] for a, b in blocks_before.items()}
    wrong = sum(blocks_before[int(a, 16)][0] != int(b) for a, b, _ in found)
    uncertain = re.search(r"^device.* uncertain (\d+)", text, re.M)
    assert wrong <= (int(uncertain[1]) if uncertain else 0)
    if any(e["action"] == "free_requested" for e in entries[done:]):
        waiting = re.findall(r"(?m)^free_requested #(\d+) .*", text)
        for number, (addr, _, _) in enumerate(found):
            state_ = blocks_before[int(addr, 16)][2]
            assert state_ != "active_pending_free" or str(number) in waiting
    return wrong, len(found)


def test_cut_anywhere(driver):
    for settings, most in (("", 0.01), (":expandable_segments:True", 0),
                           (":roundup_power2_divisions:4", 0.01)):
        wrong = blocks_ = 0
        for seed in range(1, rounds(2, 4)):
            rows = made(seed, 400, streams=1, pools=1, most=40, large=26, odd=15)
            for at in random.Random(seed).sample(range(len(rows)), rounds(8, 40)):
                some, all_ = cut(driver, rows, at, settings)
                wrong, blocks_ = wrong + some, blocks_ + all_
        assert blocks_ > 50 and wrong <= most * blocks_, (wrong, blocks_)


if __name__ == "__main__":
    trace_main(globals(), {os.path.join(HERE, "cft.cases"): in_lines(answer_cft)})
