# SPDX-License-Identifier: Apache-2.0
"""Reads the data of a page of `cufrag view`, independently of script/read.js and of tape.c."""
import base64
import json
import re
import zlib

SERIES = ("requested", "allocated", "active", "reserved")


class Column:
    def __init__(self, data):
        self.data, self.at = data, 0

    def more(self):
        return self.at < len(self.data)

    def u(self):
        value = shift = 0
        while True:
            b = self.data[self.at]
            self.at += 1
            value |= (b & 127) << shift
            shift += 7
            if b < 128:
                return value

    def step(self):
        z = self.u()
        return (z >> 1) ^ -(z & 1)


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.html = f.read()
        self.blobs = {int(number): (kind, text) for kind, number, text in re.findall(
            r'<script type="application/(zlib|octet-stream)" id="b(\d+)">([A-Za-z0-9+/=]*)</script>', self.html)}
        self.head = json.loads(self.blob(int(re.search(r'data-head="(\d+)"', self.html)[1])))

    def blob(self, number):
        kind, text = self.blobs[number]
        data = base64.b64decode(text)
        return zlib.decompress(data) if kind == "zlib" else data

    def columns(self, number):
        data, at, out = self.blob(number), 0, []
        while at < len(data):
            n = int.from_bytes(data[at:at + 4], "little")
            out.append(Column(data[at + 4:at + 4 + n]))
            at += 4 + n
        return out

    def texts(self, number):
        return self.columns(number)[0].data.decode("utf-8").split("\0")[:-1]

    def buckets(self, lane):
        """(us, [(low, high) of each series]) for each bucket."""
        rows, last, out = self.columns(lane["pyramid"]), [0] * 4, []
        while rows[8].more():
            pairs = []
            for s in range(4):
                last[s] += rows[2 * s].step()
                pairs.append((last[s] - rows[2 * s + 1].u(), last[s]))
            out.append((rows[8].u(), pairs))
        return out

    def events(self, lane):
        """A dict for each event: kind, us, slot, address, bytes, stack and the four series after it."""
        program = self.head["lanes"][lane["program"]]
        for k in range(0, len(lane["pieces"]), 4):
            yield from self.piece(program["pieces"][k:k + 2] + lane["pieces"][k + 2:k + 4], k // 4 * lane["piece_events"])

    def piece(self, blobs, first):
        key, places = self.columns(blobs[0])[0], self.columns(blobs[2])[0]
        us, now, live, born = key.u(), [places.u() for _ in range(4)], {}, {}
        slot, addr = -1, 0
        while (d := key.u()):
            slot += d
            age, _, size, stack, _, _ = (key.u() for _ in range(6))
            state, granted = places.u(), 0
            if state != 3:
                addr += places.step()
                granted = size + places.step()
            live[slot], born[first - age] = [state, size, granted, addr], slot
        op, time, asked, slots, _ = self.columns(blobs[1])
        ref, addrs, extra, _, correct = self.columns(blobs[3])
        places_of, spare, last, high = [], [], [0] * 4, 0
        fix = correct.u() if correct.more() else -1
        for i, code in enumerate(op.data):
            what, out = code & 7, {}
            us += time.step()
            if what in (0, 5):
                last = [v + asked.step() for v in last]
                out["bytes"], out["stack"] = last[:2]
            if what == 0:
                explicit, r = slots.u(), ref.u()
                slot = explicit - 1 if explicit else spare.pop()
                if r == 1:
                    high += addrs.step()
                    places_of.append(high * 512 + addrs.u())
                addr, granted = (places_of[r - 2], out["bytes"] + extra.step()) if r > 1 else (places_of[-1], out["bytes"] + extra.step()) if r else (None, 0)
                live[slot], born[first + i] = [1 if r else 3, out["bytes"], granted, addr], slot
                if r:
                    now = [now[0] + out["bytes"], now[1] + granted, now[2] + granted, now[3]]
                out["address"], out["granted"] = addr, granted
            elif what < 4:
                slot = born[first + i - slots.u()]
                state, size, granted, out["address"] = live[slot]
                if state == 1:
                    now = [now[0] - size, now[1] - granted] + now[2:]
                if state in (1, 2) and what != 2:
                    now[2] -= granted
                live[slot][0] = 0 if what != 2 else 2 if state == 1 else state
                if what != 2:
                    spare.append(slot)
            while fix == i:
                s = correct.u()
                now[s] += correct.step()
                fix = correct.u() if correct.more() else -1
            if what < 4:
                out["slot"] = slot
            yield {"kind": what, "us": us, **out, "series": list(now)}
