#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pools in long random runs against models that search everything, in TAP: models.py
BUILD/tests/drivers

Every block must lie where the model has it, and the pool must grow, wait and refuse when the model
does. test_policy.c holds the policy; single rules are in *.rules."""
import bisect
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from driven import main  # noqa: E402

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Random:
    """Random requests and frees on one policy, some at a time, for the model's judgement."""

    def __init__(self, driver, text, card, slots, seed):
        self.driver, self.blocks, self.slots, self.rng = driver, {}, slots, random.Random(seed)
        self.chunks = []  # (address, bytes) of what the policy took, in order
        result, fields, _ = driver.ask("policy", text, card, 0, 0, 0)
        assert result == 0, fields
        driver.ask("calm", 64)  # promises are checked at every 64th call

    def steps(self, count, draw):
        """Yields (step, slot, block or None, (size, stream), answer): of a request None is the
        block, of a free the answer. draw(step, is_live) gives (size, stream) of a request, or None
        to leave the slot alone."""
        step = 0
        while step < count:
            asked, words = [], []
            for slot in self.rng.sample(range(self.slots), 32):
                block = self.blocks.get(slot)
                want = draw(step, block is not None)
                step += 1
                if want is None:
                    continue
                asked.append((step, slot, block, want))
                words.append(("free", block[0], block[1]) if block else ("alloc", *want))
            for (at, slot, block, want), (result, fields,
                                          before) in zip(asked, self.driver.ask_many(words)):
                self.chunks += [(int(line[1]), int(line[2])) for line in before if line[0] == "t"]
                assert result >= 0 and (result == 0 or not block), fields
                if block:
                    del self.blocks[slot]
                    yield at, slot, block, want, None
                    continue
                answer = (int(fields[0]), int(fields[1]), int(fields[2]), int(fields[3]),
                          fields[4]) if result == 0 else None
                if answer:
                    self.blocks[slot] = (*answer, want)
                yield at, slot, None, want, answer

    def end(self):
        seen = {line[1]: int(line[2]) for line in self.driver.ask("look")[2] if line[0] == "v"}
        self.driver.ask("close")
        return seen


# ---- free memory: pieces [address, size, begins a chunk] in order of address, neighbours merged --


def insert(pieces, addr, size, head=False):
    i = bisect.bisect(pieces, [addr])
    if i and sum(pieces[i - 1][:2]) == addr and not head:
        i -= 1
        pieces[i][1] += size
    else:
        pieces.insert(i, [addr, size, head])
    if i + 1 < len(pieces) and sum(pieces[i][:2]) == pieces[i + 1][0] and not pieces[i + 1][2]:
        pieces[i][1] += pieces.pop(i + 1)[1]


def take(pieces, size):
    """Best fit, taken out and split; None if there is none."""
    fits = [(p[1], i) for i, p in enumerate(pieces) if p[1] >= size]
    if not fits:
        return None
    addr, whole, _ = pieces.pop(min(fits)[1])
    if whole > size:
        insert(pieces, addr + size, whole - size)
    return addr


# ---- rmm-pool: a list for each stream ----------------------------------------------------------


def rmm_pool(driver, text, seed, most):
    lists, waits, merges = [[] for _ in range(5)], 0, 0
    run = Random(driver, text, 16 * GIB, 300, seed)

    def draw(step, _):
        # streams take turns; phases of small requests break up what large ones need
        return (run.rng.randrange(most >> step // 1000 % 3 * 2) + 1, step // 300 % 5
                if run.rng.randrange(8) else 0)

    heads = {}
    for _, _, block, (bytes_, stream), answer in run.steps(60000, draw):
        if block:
            insert(lists[block[5][1]], block[2], block[3], block[2] in heads)
            continue
        size, own = -(-bytes_ // 256) * 256, lists[stream]
        addr = take(own, size)
        for other in lists:
            if addr is None and other is not own:
                addr = take(other, size)
                waits += addr is not None
        for other in lists:
            if addr is None and other is not own and other:
                waits, merges = waits + 1, merges + 1
                for piece in other:
                    insert(own, *piece)
                other.clear()
                addr = take(own, size)
        if not answer:
            assert addr is None, "refused, but there is room"
            continue
        if addr is None:
            assert answer[4] == "grow", answer
            heads[run.chunks[len(heads)][0]] = True
            insert(own, *run.chunks[len(heads) - 1], True)
            addr = take(own, size)
        assert answer[2] == addr, (answer, addr)
    seen = run.end()
    assert len(heads) == len(run.chunks) and waits == seen["cudaEventRecord"] > 1000, (heads, waits)
    return merges


def test_rmm_pool(driver):
    for seed, most in ((1, 4 * KIB), (2, 100 * KIB), (3, 4 * MIB)):
        rmm_pool(driver, "rmm-pool", seed, most)
    # nearly full: lists are merged time and again
    assert rmm_pool(driver, "rmm-pool:maximum=70M,reclaim=false", 4, MIB) > 1000


# ---- rmm-arena: superblocks [address, size, owner, free pieces] in order of address --------------

GLOBAL = -1


def is_empty(block):
    return len(block[3]) == 1 and block[3][0][1] == block[1]


def try_arena(supers, stream, size):
    """Address, or None."""
    large = size > MIB
    for owner in (stream, GLOBAL)[large:]:
        for place, block in enumerate(supers):
            fits = [p for p in block[3] if p[1] >= size] if block[2] == owner else []
            if not fits:
                continue
            head = max(MIB, size)
            if owner == GLOBAL and is_empty(block) and block[1] >= head + MIB:
                rest = [block[0] + head, block[1] - head]
                supers.insert(place + 1, [*rest, GLOBAL, [[*rest, False]]])
                block[1] = fits[0][1] = head
            block[2] = GLOBAL if large else stream
            addr = fits[0][0]
            fits[0][0] += size
            fits[0][1] -= size
            if not fits[0][1]:
                block[3].remove(fits[0])
            return addr
    return None


def merge_empty(supers):
    i = 0
    while i + 1 < len(supers):
        block, after = supers[i:i + 2]
        if block[2] == after[2] == GLOBAL and is_empty(block) and is_empty(after):
            block[1] += supers.pop(i + 1)[1]
            block[3][0][1] = block[1]
        else:
            i += 1


def test_rmm_arena(driver):
    run = Random(driver, "rmm-arena:size=224M", 256 * MIB, 400, 11)
    supers = [[0, 224 * MIB, GLOBAL, [[0, 224 * MIB, False]]]]
    syncs = defragments = refused = 0
    rng = run.rng

    def draw(step, _):
        # phases of small and of large requests: empty superblocks are where they are not wanted
        small = step // 2000 % 2
        if rng.randrange(16) < (15 if small else 1):
            size = rng.randrange(2 * MIB if small else 6 * MIB) + 1
        else:
            size = rng.randrange(40 * KIB if rng.randrange(4) else 900 * KIB) + 1
        return size, step // 1000 % 4  # the other streams keep what they had

    for _, _, block, (bytes_, stream), answer in run.steps(40000, draw):
        base = run.chunks[0][0] if run.chunks else 0
        if block:
            size, mine = block[3], block[5][1]
            home = supers[bisect.bisect(supers, [block[2] - base, 1 << 60]) - 1]
            insert(home[3], block[2] - base, size)
            owner = home[2]
            merge_empty(supers)
            syncs += (1 if owner in (GLOBAL, mine) else 2) if size > MIB else owner != mine
            continue
        size = -(-bytes_ // 256) * 256
        addr = try_arena(supers, stream, size)
        if addr is None:
            defragments += 1
            for block in supers:
                block[2] = GLOBAL
            merge_empty(supers)
            addr = try_arena(supers, stream, size)
        assert (addr is None) == (answer is None), (addr, answer)
        assert answer is None or answer[2] - base == addr, (answer, addr)
        refused += answer is None
    seen = run.end()
    assert seen["cudaStreamSynchronize"] == syncs, (seen, syncs)
    assert seen["cudaDeviceSynchronize"] == defragments, (seen, defragments)
    assert refused > 100 and defragments > refused + 10, (refused, defragments)


# ---- quickpool: one list of all pieces [address, size, stamp, free, first of its chunk] ----------


def test_quickpool(driver):
    run = Random(driver, "quickpool:first=2M,percent=0", GIB, 250, 5)
    pieces, clock, chunks = [], 0, 0

    def draw(*_):
        # few sizes, so that equals are frequent
        return (1 + run.rng.randrange(12)) * (4096 if run.rng.randrange(5) else 65536), 0

    for _, _, block, (size, _), answer in run.steps(30000, draw):
        if block:
            i = bisect.bisect(pieces, [block[2]])
            piece = pieces[i]
            piece[2:4] = clock, True
            clock += 1
            if i and pieces[i - 1][3] and not piece[4]:
                pieces[i - 1][1:3] = pieces[i - 1][1] + piece[1], piece[2]
                i -= 1
                del pieces[i + 1]
            if i + 1 < len(pieces) and pieces[i + 1][3] and not pieces[i + 1][4]:
                pieces[i][1] += pieces.pop(i + 1)[1]
            continue
        best = min((p for p in pieces if p[3] and p[1] >= size), key=lambda p: p[1:3], default=None)
        if not best:
            addr, whole = run.chunks[chunks]
            chunks += 1
            assert whole == (2 if chunks == 1 else 1) * MIB + 16, whole
            best = [addr, whole - 16, 0, True, True]
            bisect.insort(pieces, best)
        assert answer[2] == best[0], (answer, best)
        rest = [best[0] + size, best[1] - size, clock, True, False]
        best[1], best[3] = size, False
        if rest[1]:
            clock += 1
            bisect.insort(pieces, rest)
    run.end()
    assert chunks == len(run.chunks) > 10


# ---- dynamicpool: one chunk as a map of units of 4 KiB -------------------------------------------


def test_dynamicpool(driver):
    run = Random(driver, "dynamicpool:first=8M,next=64M", 64 * MIB, 200,
                 5)  # a second chunk does not fit
    used, refused = bytearray(2048), 0
    for _, _, block, (size, _), answer in run.steps(20000,
                                                    lambda *_: ((1 + run.rng.randrange(40)) * 4096,
                                                                0)):
        held = block or answer
        at = (held[2] - run.chunks[0][0]) // 4096 if held else None
        if block:
            used[at:at + block[3] // 4096] = bytes(block[3] // 4096)
            continue
        # the first of the shortest runs that are long enough
        runs = [(m.end() - m.start(), m.start()) for m in re.finditer(rb"\0+", used)]
        best = min((r for r in runs if r[0] >= size // 4096), default=(0, None))[1]
        assert at == best, (at, best)
        refused += at is None
        if at is not None:
            used[at:at + size // 4096] = b"\1" * (size // 4096)
    run.end()
    assert len(run.chunks) == 1 and refused > 100, (run.chunks, refused)


# ---- buddy: always the lowest free half serves, and then no other arena is opened
# -----------------


def test_buddy(driver):
    run = Random(driver, "buddy:arena=2M,give-back=free", 64 * GIB, 256, 1)
    live = {}

    def draw(step, is_live):
        # tides, so that many arenas are open, and then few
        ebb = step // 500 & 1
        if not (ebb or run.rng.randrange(8) == 0 if is_live else not ebb
                or run.rng.randrange(8) == 0):
            return None
        return (MIB if run.rng.randrange(2) else 2 * MIB), 0

    for _, _, block, (size, _), answer in run.steps(8000, draw):
        if block:
            del live[block[2]]
            continue
        halves = [addr ^ MIB for addr, granted in live.items() if granted == MIB
                  and addr ^ MIB not in live]
        if size == MIB and halves:
            assert answer[2] == min(halves), (answer, min(halves))
        else:
            assert answer[4] == "grow", answer
        live[answer[2]] = answer[3]
    run.end()


if __name__ == "__main__":
    main("test_policy", globals())
