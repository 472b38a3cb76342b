#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of a real card's managed memory is resident, in TAP: uvm.py BUILD/tests/drivers

What is taken, against sequences measured on an H200 (driver 580.159.04); what is resident, against
the simulated card; chunks of tails, against what the rule says."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from card import MIB, Card, main, recorded, up  # noqa: E402

KIB, BLOCK, BASE = 1 << 10, 2 * MIB, 1 << 40


class Uvm(Card):
    def __init__(self, driver):
        super().__init__(driver)
        self.must("uvm")

    def add(self, addr, size, touched=None, prefetch=True):
        self.must("uvm-add", addr, size)
        if touched:
            self.touch(addr, touched, prefetch)

    def touch(self, addr, size, prefetch=True):
        self.must("uvm-touch", addr, size, int(prefetch))

    def free(self, addr):
        self.must("uvm-free", addr)

    def state(self, *addr):
        return self.look("uvm-look", *addr)

    def taken(self):
        return self.state()["taken"] // MIB

    def used(self, want, resident=None):
        state = self.state()
        assert state["used"] == want and resident in (None,
                                                      state["resident"]), (state, want, resident)


def place(size, i):
    """The driver's places: whole pages, or as many to a page as fit."""
    to_a_page = BLOCK // size
    if not to_a_page:
        return BASE + i * up(size, BLOCK)
    return BASE + i // to_a_page * BLOCK + i % to_a_page * size


# bytes, touched, how many; MiB by which free memory fell until all was touched, and until all was
# freed again: by touches, and by prefetches from another state
MEASURED = [
    (3 * MIB, 3 * MIB, 64, (128, -64), (128, -64)),
    (2 * MIB + 64 * KIB, 2 * MIB + 64 * KIB, 64, (128, -4), (128, -4)),
    (2 * MIB + 4 * KIB, 2 * MIB + 4 * KIB, 64, (128, -8), (128, -8)),
    (100 * KIB, 100 * KIB, 128, (0, -14), (128, 114)),
    (512, 512, 512, (0, -2), (0, -2)), (2 * MIB, 2 * MIB, 64, (128, 0), (128, 0)),
    (MIB, MIB, 64, (128, 64), (0, -64)),
    (1536 * KIB, 1536 * KIB, 64, (128, 0), (128, 0)), (64 * MIB, 1, 8, (0, -16), (0, -16)),
    (64 * MIB, 3 * MIB, 8, (0, -32), (0, -32)), (7 * MIB, 7 * MIB, 32, (256, 32), (256, 32)),
    (1024 * MIB, 1024 * MIB, 4, (4096, 0), (4096, 0))]


def test_measured(driver):
    uvm = Uvm(driver)
    for prefetch in (0, 1):
        uvm.add(BASE, 4 * MIB, 4 * MIB, prefetch)
        assert uvm.taken() == (124 if prefetch else 128)
        uvm.free(BASE)
        assert uvm.taken() == (120 if prefetch else 124)
    for prefetch in (0, 1):
        for size, touched, count, *by in MEASURED:
            before = uvm.taken()
            for i in range(count):
                uvm.add(place(size, i), size, touched, prefetch)
            assert uvm.taken() - before == by[prefetch][0], (size, prefetch)
            for i in range(count):
                uvm.free(place(size, i))
            assert uvm.taken() - before == by[prefetch][1], (size, prefetch)
            uvm.used(0, 0)
    assert uvm.taken() == 32  # "end: 32 MiB less than start"


def test_recorded(driver):
    """After each step of two recordings."""
    for name in ("mempool", "streams"):
        uvm = Uvm(driver)
        for i, (addr, size, taken) in enumerate(recorded("h200_managed.inc", name)):
            if size:
                uvm.add(BASE + addr, size, size)
            else:
                uvm.free(BASE + addr)
            assert uvm.taken() == taken, (name, i, uvm.taken(), taken)


def test_tails(driver):
    """Free chunks are used in the order in which they became free; a root goes with its last
    one."""
    uvm, half = Uvm(driver), 3 * MIB  # a block, and a tail of half a root
    for i in range(4):
        uvm.add(place(half, i), half, half)
    uvm.used(4 + 2)
    uvm.free(place(half, 0))  # half of the first root
    uvm.free(place(half, 2))  # half of the second one
    uvm.used(2 + 2)
    # a tail of 24 groups: half of the first root, a quarter of the second
    uvm.add(BASE + 64 * MIB, 3584 * KIB, 3584 * KIB)
    for addr, used in ((None, 3 + 2),
                       (place(half, 1), 2 + 2),  # the first root still has half a tail
                       (BASE + 64 * MIB, 1 + 1),  # the second one is the last one's
                       (place(half, 3), 0)):
        if addr:
            uvm.free(addr)
        uvm.used(used)
    assert uvm.state()["spare"] == 64 - 6 - 1


def test_part_of_a_tail(driver):
    """What is touched of a tail takes a chunk for each group; the rest takes none."""
    uvm = Uvm(driver)
    uvm.add(BASE, 3 * MIB)
    for touched, prefetch, used, resident in (
            (1, 1, 1, None), (2 * MIB, 1, 1, 2 * MIB), (2 * MIB + 1, 1, 2, 2 * MIB + 64 * KIB),
            (2 * MIB + 9 * 64 * KIB, 0, 2,
             3 * MIB)):  # nine of the 16 groups that there are: more than 51 %
        uvm.touch(BASE, touched, prefetch)
        uvm.used(used, resident)
    uvm.free(BASE)
    assert uvm.taken() == (64 - 2) * 2


def test_almost_a_block(driver):
    """One byte less than a page of the host makes no tail of a block; a whole page less does, of
    32."""
    uvm = Uvm(driver)
    uvm.add(BASE, 4 * MIB - 4 * KIB, 4 * MIB - 4 * KIB)
    assert uvm.state(BASE)["tail"] and not uvm.state()["group"]
    uvm.used(2, 4 * MIB)
    uvm.add(BASE + 4 * MIB, 4 * MIB - 4 * KIB + 1, 3 * MIB)
    assert not uvm.state(BASE + 4 * MIB)["tail"]
    uvm.used(4)
    uvm.free(BASE + 4 * MIB)
    uvm.free(BASE)
    uvm.used(0, 0)


def test_across_pages(driver):
    """A request that lies across two pages, as no known card places one, stands alone."""
    uvm = Uvm(driver)
    uvm.add(BASE + MIB, 1536 * KIB)
    assert not uvm.state(BASE + MIB)["shares"]
    uvm.touch(BASE + MIB, 1536 * KIB, 0)
    uvm.used(1, 1536 * KIB)
    uvm.free(BASE + MIB)
    assert not uvm.state(BASE + MIB)["there"]
    uvm.used(0, 0)


def test_resident_as_simulated(driver):
    uvm, rng, live = Uvm(driver), random.Random(11), {}
    uvm.must("card", 16 << 30, 0)
    for _ in range(20000):
        i, prefetch = rng.randrange(60), rng.randrange(2)
        if i not in live:
            size = rng.choice([rng.randrange(512 * KIB) + 1, rng.randrange(4 * MIB) + 1,
                               (rng.randrange(40) + 1) * 64 * KIB, rng.randrange(40 * MIB) + 1])
            live[i] = uvm.must("managed", size), size
            uvm.add(*live[i])
        elif rng.randrange(4) == 0:
            addr, _ = live.pop(i)
            uvm.must("let", addr)
            uvm.free(addr)
        else:
            addr, size = live[i]
            touched = rng.randrange(size) + 1 if rng.randrange(3) else size
            uvm.must("prefetch" if prefetch else "touch", addr, touched)
            uvm.touch(addr, touched, prefetch)
        state = uvm.state()
        assert state["resident"] == uvm.look()["reserved"] <= state["used"] * BLOCK
        assert state["spare"] < 64
    for addr, _ in live.values():
        uvm.free(addr)
    uvm.used(0, 0)
    assert not uvm.state()["group"] and not uvm.state()["page"]


def test_out_of_memory(driver):
    uvm = Uvm(driver)
    for n in range(1, 6):
        assert uvm.ask("uvm-short", n)[0] == "oom"
    uvm.add(BASE, 512, 512, 0)
    uvm.used(1, 64 * KIB)


if __name__ == "__main__":
    main("test_card", globals())
