# SPDX-License-Identifier: Apache-2.0
"""A grammar of .cft (src/trace/cft/cft.h): files of all versions whose blocks are those that a
reader expects. Checksums are left 0: the driver test_trace ("sign") and the fuzz targets make them
good. grammar.py FOLDER COUNT writes files for those, FOLDER/cft and FOLDER/whole."""
import random
import struct
import sys

MOST = 2**64 - 1
WORDS = ["</script>", "=1+1", "x" * 200, "'", "%s%n", "a,b", "torch/nn/x.py", "../..", "$(x)", ""]


def numbers(values, differences=False):
    """A column of 64-bit numbers in planes of bytes."""
    values = [v & MOST for v in values]
    if differences:
        steps = [(v - last) & MOST for v, last in zip(values, [0, *values])]
        values = [(s << 1 & MOST) ^ (MOST if s >> 63 else 0) for s in steps]
    width = (max(values, default=0).bit_length() + 7) // 8
    planes = b"".join(bytes(v >> 8 * p & 255 for v in values) for p in range(width))
    return struct.pack("<BBBBII", 0, width, 3 if differences else 1, 0, len(values),
                       len(planes)) + planes


def raw(data, width=1):
    return struct.pack("<BBBBII", 0, width, 0, 0, len(data) // width, len(data)) + data


def text(words):
    return numbers([words is not None]) + raw((words or "").encode())


def block(kind, device, count, *columns):
    payload = b"".join(columns)
    return struct.pack("<BBHIIIQ", kind, 0, device, count, len(payload), 0, 0) + payload


def table(kind, device, rows, differences=()):
    """A block of records, one column for each field; none where there are no records."""
    columns = [numbers(c, i in differences) for i, c in enumerate(zip(*rows))]
    return [block(kind, device, len(rows), *columns)] if rows else []


def file(version, events, *blocks):
    """Preamble and blocks, of which there may be lists, and the end."""
    flat = [b for some in blocks for b in (some if isinstance(some, list) else [some])]
    end = block(14, 0, 1, numbers([len(flat), events]))
    return b"\x93cft\r\n\x1a\n" + struct.pack("<II", version, 0) + b"".join([*flat, end])


def head(version=1, devices=1, strings=1, frames=0, index=0, stacks=0, settings=(), name="x",
         conf=None, releases=(211, 211), note=None, cards=None):
    settings = (*settings, *[0, MOST, 0, 0, MOST, 0][len(settings):])
    columns = [numbers([0, 9, devices, strings, frames, index, stacks, *settings, *[0] * 16]),
               text(name), text("csv"), text(conf)]
    columns += [numbers(releases)] if version >= 2 else []
    columns += [text(note)] if version >= 3 else []
    columns += [text(cards)] if version >= 5 else []
    return block(1, 0, 1, *columns)


def device(index, events, slots, streams=(0,), pools=((0, 0),), evidence=0, addresses=0, seen=0,
           final=(0, 0), initial=(0, 0), ordinal=None):
    values = [index if ordinal is None else ordinal, events, slots, len(streams), len(pools),
              evidence, addresses, seen, *final, *initial, events, 0, 0]
    return block(6, index, 1, numbers(values), numbers(streams, True),
                 numbers([p[0] for p in pools], True), numbers([p[1] for p in pools], True))


def events(index, rows, addresses=None):
    """Blocks of events (kind, flags, slot, bytes, pool, stream, time, stack) and of addresses."""
    if not rows:
        return []

    def coded(values):
        """(the distinct ones, the number of each)"""
        distinct = list(dict.fromkeys(values))
        return distinct, raw(bytes(distinct.index(v) for v in values))

    steps = [r[6] - before[6] for before, r in zip([[0] * 7, *rows], rows)]
    codes, code = coded([r[0] | r[1] << 8 | 3 << 16 for r in rows])
    requests, request = coded([r[3:6] for r in rows])
    stacks, stack = coded([r[7] for r in rows])
    made = [block(9, index, len(rows), raw(struct.pack(f"<{len(codes)}I", *codes), 4), code,
                  raw(bytes(min(s, 255) for s in steps)), numbers([s for s in steps if s >= 255]),
                  raw(b"", 2), numbers([r[2] for r in rows]), *map(numbers, zip(*requests)),
                  request, numbers(stacks), *[stack] * (len(stacks) > 1))]
    if addresses is not None:
        known, which = coded(addresses)
        made.append(block(10, index, len(rows), numbers(known), *[which] * (len(known) != 1)))
    return made


# ---- at random ----------------------------------------------------------------------------------


def size(rng):
    return rng.choice([0, 1, 512, 513, 2 << 20, 1 << 30, 2**32, 2**48 - 1, 2**63, MOST - 511, MOST])


def address(rng):
    return 0x7F0000000000 + (rng.randrange(1 << 12) << 18) if rng.randrange(9) else size(rng)


def initial_state(rng, streams, pools):
    """(segments, blocks)"""
    segments, blocks = [], []
    for place in range(rng.choice([0, 0, 1, 2, 5])):
        start, room = 0x7F0000000000 + (place << 26), rng.choice([2 << 20, 20 << 20, 64 << 20])
        stream, first = rng.randrange(streams), len(blocks)
        for k in range(rng.randrange(4)):
            blocks.append([start + k * (room // 4), room // 4, rng.choice([room // 4, 1, 0]),
                           stream, len(blocks), rng.randrange(2)])
        segments.append([start, room, stream, rng.randrange(pools), rng.randrange(2), 0, first,
                         len(blocks) - first, rng.choice([0, start])])
    return segments, blocks


def history(rng, blocks, streams, pools, stacks, strings):
    """Events that keep the rules, and how many slots they need."""
    live, free, rows, time = {}, [], [], 0
    for b in blocks:
        live[b[4]] = [(b[2] or 1, rng.randrange(pools), b[3]), False]
        rows.append((0, 1, b[4], *live[b[4]][0], time, 0))
    high, sizes = len(blocks), rng.choice([[512], [1 << 20, 2 << 20], [1, 2**48 - 1], [1 << 30]])
    for _ in range(rng.choice([0, 2, 10, 60, 200])):
        time += rng.choice([0, 1, 254, 255, 256, 10**6])
        stack, what = rng.randrange(stacks or 1), rng.random()
        request = (rng.choice(sizes), rng.randrange(pools), rng.randrange(streams))
        if what < .1:
            mark = (6, rng.choice([0, 4, 8, 12]), rng.randrange(strings), 0, 0, 0, time, 0)
            rows.append(rng.choice([(4, rng.choice([0, 16]), 0, 0, *request[1:], time, stack),
                                    (5, 0, 0, *request, time, stack), mark]))
        elif live and what < .55:
            slot = rng.choice(list(live))
            request, waits = live[slot]
            kind = 3 if waits else rng.choice([1, 1, 1, 2])
            rows.append((kind, kind == 3 and rng.choice([0, 2]), slot, *request, time, stack))
            if kind == 2:
                live[slot][1] = True
            else:
                del live[slot]
                free.append(slot)
        else:
            slot = free.pop(rng.randrange(len(free))) if free else high
            high += slot == high
            rows.append((0, 0, slot, *request, time, stack))
            live[slot] = [request, False]
    return rows, high


def a_device(rng, index, stacks, strings):
    """(its events, the blocks before all events, before its own, of its events and after them)"""
    streams = sorted({0, *(size(rng) for _ in range(rng.choice([0, 0, 1, 4])))})
    pools = [(0, 0)] + [rng.choice([(MOST, i + 1), (1, 2**63), (0, i + 1)])
                        for i in range(rng.choice([0, 0, 1, 4, 40]))]
    segments, blocks = initial_state(rng, len(streams), len(pools))
    rows, slots = history(rng, blocks, len(streams), len(pools), stacks, strings)
    evidence, known = rng.random() < .7, rng.random() < .95
    addresses = [address(rng) for r in rows if r[0] == 0] if known else None
    befores = sorted(rng.randrange(len(rows) + 1) for _ in range(rng.choice([0, 1, 5, 40])))
    seen = [(b, address(rng), rng.choice([2 << 20, size(rng)]), rng.randrange(99),
             rng.randrange(len(streams)), rng.randrange(6)) for b in befores]
    final = [(address(rng), size(rng), 0, 1, rng.randrange(len(streams)), rng.randrange(len(pools)),
              rng.randrange(2), rng.randrange(2)) for _ in range(rng.choice([0, 0, 1, 5]))]
    parts = [(address(rng), size(rng), size(rng), rng.randrange(3)) for _ in final[:1]]
    about = device(index, len(rows), slots, streams, pools, evidence, known, len(seen),
                   (len(final), len(parts)), (len(segments), len(blocks)))
    return (len(rows), about, table(7, index, segments) + table(8, index, blocks),
            events(index, rows, addresses) + table(11, index, seen, [0]) +
            table(12, index, final) + table(13, index, parts))


def random_file(rng):
    version = rng.choice([1, 2, 3, 5, 5])
    strings = list(dict.fromkeys(w for w in rng.sample(WORDS, rng.randrange(8)) if w))
    frames = [tuple(rng.randrange(len(strings) + 1) for _ in range(3)) for _ in range(4)]
    ends, index = [0, 2, 3], [0, 1, 3]
    count = rng.choice([1, 1, 2, 3])
    devices = [a_device(rng, i, len(ends), len(strings) + 1) for i in range(count)]
    double = struct.unpack("<Q", struct.pack("<d", rng.choice([0, .8, 1e300, float("nan")])))[0]
    settings = [rng.randrange(2), rng.choice([MOST, 20 << 20, size(rng)]), double, rng.randrange(2),
                rng.choice([MOST, 1 << 30, size(rng)]), rng.randrange(2)]
    note = rng.choice([None, "card h100\ntorch 2.11\nstatus 0\n", "total 1\nvalue x\nagain \n"])
    cards = "\n".join(rng.choice(["-", f"{size(rng)} {size(rng)} 0 0.5 X"]) for _ in devices) + "\n"
    encoded = [s.encode() for s in strings]
    named = [block(2, 0, len(strings), numbers(map(len, encoded)), raw(b"".join(encoded)))]
    first = head(version, count, len(strings) + 1, len(frames), len(index), len(ends), settings,
                 rng.choice([None, *WORDS]), rng.choice([None, "expandable_segments:True", "x:1"]),
                 rng.choice([(211, 211), (201, 215)]), note, cards)
    return file(version, sum(d[0] for d in devices), first, named if strings else [],
                table(3, 0, frames), table(4, 0, [(i,) for i in index]),
                table(5, 0, [(e,) for e in ends], [0]), [d[1] for d in devices],
                [b for d in devices for b in d[2]], [b for d in devices for b in d[3]])


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        dice = random.Random(number)
        made = random_file(dice)
        for target, before in ("cft", b""), ("whole", bytes([dice.randrange(256)])):
            with open(f"{sys.argv[1]}/{target}/made-{number}", "wb") as f:
                f.write(before + made)
