#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of a real card's managed memory is resident, in TAP: uvm.py BUILD/tests/drivers

Against the simulated card, and where the rule alone decides."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from card import MIB, Card, main  # noqa: E402

KIB, BASE = 1 << 10, 1 << 40


class Uvm(Card):
    def __init__(self, driver):
        super().__init__(driver)
        self.must("uvm")

    def add(self, addr, size):
        self.must("uvm-add", addr, size)

    def touch(self, addr, size, prefetch=True):
        self.must("uvm-touch", addr, size, int(prefetch))

    def free(self, addr):
        self.must("uvm-free", addr)

    def state(self, *addr):
        return self.look("uvm-look", *addr)

    def resident(self):
        return self.state()["resident"]


def test_part(driver):
    uvm = Uvm(driver)
    uvm.add(BASE, 3 * MIB)
    for touched, prefetch, resident in (
            (2 * MIB, 1, 2 * MIB), (2 * MIB + 1, 1, 2 * MIB + 64 * KIB),
            (2 * MIB + 9 * 64 * KIB, 0,
             3 * MIB)):  # nine of the 16 groups that there are: more than 51 %
        uvm.touch(BASE, touched, prefetch)
        assert uvm.resident() == resident, touched
    uvm.free(BASE)
    assert uvm.resident() == 0


def test_across_pages(driver):
    """A request that lies across two pages, as no known card places one, stands alone."""
    uvm = Uvm(driver)
    uvm.add(BASE + MIB, 1536 * KIB)
    assert not uvm.state(BASE + MIB)["shares"]
    uvm.touch(BASE + MIB, 1536 * KIB, 0)
    assert uvm.resident() == 1536 * KIB
    uvm.free(BASE + MIB)
    assert not uvm.state(BASE + MIB)["there"] and uvm.resident() == 0


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
        assert uvm.resident() == uvm.look()["reserved"]
    for addr, _ in live.values():
        uvm.free(addr)
    assert uvm.resident() == 0


if __name__ == "__main__":
    main("test_card", globals())
