#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated card, in TAP: card.py BUILD/tests/drivers

card_*.cases call by call; what a real driver did (h200_*.inc). Random calls: tests/conformance. A
line of a case is a call and what came of it: an address or a number, which may be a sum of names,
or how it failed. Of several calls in a line ("call; call") the last one answers, and those before
must succeed. CASES_REWRITE=1 writes the answers anew. Calls:

    card total=SIZE context=SIZE lag=NS idle  another card (else an H200; total: no context)
    a = malloc SIZE · free a  3 x a = malloc SIZE makes a1, a2, a3; free a* frees them
    r = reserve SIZE HINT · unreserve r SIZE                h = create SIZE · release h SIZE
    map ADDR SIZE h · access ADDR SIZE · unmap ADDR SIZE
    p = pool THRESHOLD opportunistic wait  a = take p SIZE STREAM · give p a STREAM
    trim p SIZE · destroy p · used p
    a = managed SIZE · let a · touch ADDR SIZE · prefetch ADDR SIZE · resident
    f = fence STREAM · done f LAG  sync STREAM · sync (all) · now NS
    local SIZE BEHIND · hold SIZE · mapped SIZE
    place ADDR · place oom · place rule · place wish ADDR  what the hook says next; asked: whom
    a = host SIZE · unhost ADDR SIZE                        addresses of the host process
    fail N [all]  the N-th call from now fails, or all from there; 0: none
    ready SIZE                                              the card, after so much was given back
    reserved · peak · leaks · free_memory · cost  cost: of the calls since the last time"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from driven import Wrong, cases, in_lines, main, total  # noqa: E402

MIB, ANY = 1 << 20, (1 << 64) - 1
GIVES = "malloc reserve create pool take managed host fence".split()
PLACES = {"oom": 1, "rule": -1, "wish": 2}


class Card:
    """A card with names for what it gave."""

    def __init__(self, driver, size=0, context=ANY, **more):
        self.driver, self.seen, self.opened = driver, 0, False
        self.names = {"CONTEXT": 0x7f0000000000, "RANGES": 0x302000000, "LOW": 0x7eff00000000,
                      "FAR": 0x7fb400000000,
                      "MAX": ANY, "PAGE": 32 * MIB}
        if size:
            self.must("card", size, context, more.get("lag", 0), more.get("idle", 0))

    def ask(self, *words):
        """(what is wrong, value or None, lines before)"""
        result, fields, before = self.driver.ask(*words)
        return (fields[0], None, before) if result else (None, int(fields[0]) if fields else None,
                                                         before)

    def must(self, *words):
        wrong, value, _ = self.ask(*words)
        if wrong:
            raise Wrong(f"{' '.join(map(str, words))}: {wrong}")
        return value

    def look(self, *words):
        return {k: int(v) for k, v in self.ask(*(words or ["look"]))[2] if k != "asked"}

    # ---- as text

    def number(self, text):
        value = total(text, self.names.get)
        if value is None:
            raise Wrong(f"'{text}' is not a number")
        return value

    def text(self, value, expected):
        """What is expected stays as it is written if it is the same."""
        if expected and total(expected, self.names.get) == value:
            return expected
        if value >> 32:
            return hex(value)
        return f"{value // MIB}M" if value and value % MIB == 0 else str(value)

    def words_of(self, call):
        word, *rest = call
        if word == "card":
            given = dict(w.partition("=")[::2] for w in rest)
            sizes = [self.number(given[k]) if k in given else None
                     for k in ("total", "context", "lag")]
            context = sizes[1] if sizes[1] is not None else 0 if sizes[0] else ANY
            return ["card", sizes[0] or 0, context, sizes[2] or 0, int("idle" in given)]
        if word == "place":
            kind = PLACES.get(rest[0], 0)
            return ["place", kind, self.number(rest[-1]) if kind in (0, 2) else 0]
        if word == "pool":
            return ["pool", self.number(rest[0]), int("opportunistic" in rest), int("wait" in rest)]
        if word == "now":
            return ["now", self.number(rest[0].lstrip("+")), int(rest[0][0] == "+")]
        return [word, *(1 if w == "all" else self.number(w) for w in rest)]

    def asks(self, call, expected):
        """The answer of a call that only looks; None: it is no such call."""
        word, seen = call[0], self.look
        if word in ("reserved", "peak", "leaks"):
            return self.text(seen()[word], expected)
        if word == "cost":
            now = self.must("time")
            cost, self.seen = now - self.seen, now
            return self.text(cost, expected)
        if word == "free_memory":
            return "{free} of {total}".format(**seen("info"))
        if word == "asked":
            return ", ".join(v for k, v in self.ask("look")[2] if k == "asked")
        if word == "used":
            u = seen("used", self.number(call[1]))
            return (f"used {u['used']} peak {u['used peak']}, reserved {u['reserved'] // MIB}M "
                    f"peak {u['reserved peak'] // MIB}M")
        if word == "resident":
            u = seen()
            assert u["resident"] <= u["reserved"]
            return (f"{u['resident'] >> 10}K peak {u['resident peak'] >> 10}K, "
                    f"faults {u['faults']}, in {u['in'] // MIB}M, "
                    f"out {u['out'] // MIB}M, evictions {u['evictions']}, moving {u['moving']} ns")
        return ("no", "yes")[self.must(*self.words_of(call))] if word == "done" else None

    def call(self, name, call, expected, must):
        if not self.opened and call[0] != "card":
            self.must("card", 0, ANY)
        self.opened = True
        said = self.asks(call, expected)
        if said is not None:
            return said
        wrong, value, _ = self.ask(*self.words_of(call))
        if wrong and must:
            raise Wrong(f"{call[0]}: {wrong}")
        if wrong or call[0] not in GIVES:
            return wrong or ""
        if name:
            self.names[name] = value
        return self.text(value, expected)

    def line(self, text, expected):
        *first, last = [one.split() for one in text.split(";")]
        for words, must in [(w, True) for w in first] + [(last, False)]:
            many = len(words) > 2 and words[1] == "x"
            times, words = (int(words[0]), words[2:]) if many else (1, words)
            name, words = (words[0],
                           words[2:]) if words[1:2] == ["="] else ("unnamed" if many else None,
                                                                   words)
            calls = [words]
            if words[-1].endswith("*"):
                calls = [[words[0], n] for n in self.names
                         if re.fullmatch(re.escape(words[-1][:-1]) + r"\d\w*", n)]
            for i in range(1, times + 1):
                said = [self.call(f"{name}{i}" if many else name, c, "" if must else expected,
                                  must) for c in calls]
        return "".join(said)


def answers(driver, body):
    card = Card(driver)
    driver.ask("card", 0, ANY)
    card.names.update((k, int(v)) for k, v in card.ask("prices")[2])
    return in_lines(lambda _, call, expected: card.line(call, expected))(driver, body)


# ---- every kind of call once: counted, failing, on other devices ---------------------------------

STEPS = """cudaMalloc a = malloc 3M
cuMemAddressReserve r = reserve 4M 0
cuMemCreate h = create 4M
cuMemMap map r 4M h
cuMemSetAccess access r 4M
cudaMemPoolCreate p = pool MAX
cudaMallocAsync t = take p 1000 0
cudaMallocManaged m = managed 5M
cudaMemPrefetchAsync prefetch m 5M
cudaEventRecord f = fence 0
cudaEventQuery done f 0
cudaStreamSynchronize sync 0
cudaDeviceSynchronize sync
cudaMemGetInfo info
cudaFree(managed) let m
cudaFreeAsync give p t 0
cudaMemPoolTrimTo trim p 0
cudaMemPoolDestroy destroy p
cuMemUnmap unmap r 4M
cuMemRelease release h 4M
cuMemAddressFree unreserve r 4M
cudaFree free a 3M""".split("\n")


def step(card, text):
    """What is wrong with it, or None."""
    names, _, call = text.split(" ", 1)[1].rpartition(" = ")
    wrong, value, before = card.ask(*card.words_of(call.split()))
    if value is not None and names:
        card.names[names] = value
    card.told = dict(before)
    return wrong


def test_each_call(driver):
    card, seen = Card(driver, 150109880320, 552402944), 0
    for i, text in enumerate(STEPS):
        assert step(card, text) is None, text
        if "free" in card.told:  # a segment of two pages, a handle, a pool's page, managed memory
            seen = int(card.told["total"]) - 552402944 - int(card.told["free"])
    look = card.look()
    assert (look["reserved"], look["leaks"], look["peak"], seen) == (0, 0, 45 * MIB, 45 * MIB), look


def test_each_call_fails(driver):
    """Nothing has changed then, the same call works, and nothing leaks."""
    for n, text in enumerate(STEPS, 1):
        card = Card(driver, 150109880320, 552402944)
        card.must("fail", n, 0)
        for before in STEPS[:n - 1]:
            assert step(card, before) is None, before
        was = card.look(), card.must("time")
        name, wrong = text.split()[0], step(card, text)
        takes = any(f" {word} " in text for word in "malloc reserve create take managed".split())
        assert wrong == ("oom" if takes else f"{name} failed (injected failure of call {n})"), wrong
        assert (card.look(), card.must("time")) == was, text
        for again in STEPS[n - 1:]:
            assert step(card, again) is None, (text, again)
        assert card.look()["leaks"] == card.look()["reserved"] == 0


def test_other_devices(driver):
    card = Card(driver)
    card.must("other", 0)  # null
    assert not any(step(card, text) for text in STEPS)
    assert card.look()["leaks"] == card.must("time") == 0
    card.must("other", 1)  # the host's clock, where the device does not say what it took
    at = card.must("malloc", 5)
    took = card.must("time")
    assert took >= 2 * 10**6 and card.look()["reserved"] == 42
    card.must("free", at, 5)
    assert card.must("time") == took + 7
    card.must("other", 2)  # fences and the like need no capability
    for text in STEPS[:9] + STEPS[14:]:
        wrong = step(card, text)
        assert wrong and text.split()[0] in wrong and "'fake'" in wrong, (text, wrong)
    assert card.look("used", 1)["used"] == card.look()["faults"] == 0


# ---- what the real driver did --------------------------------------------------------------------


def recorded(file, name):
    with open(os.path.join(HERE, file), encoding="utf-8") as text:
        table = re.search(name + r"\[\] = \{(.*?)\n\};", text.read(), re.S)[1]
    return [[int(n, 0) for n in row.split(",")] for row in re.findall(r"\{([^{}]*)\}", table)]


def test_recorded_mallocs(driver):
    for name in ("small_history", "mixed_history"):
        card, at = Card(driver, 150109880320, 552402944), {}
        for i, (which, size, addr, pages) in enumerate(recorded("h200_malloc.inc", name)):
            if size:
                at[which] = card.must("malloc", size)
                assert at[which] == addr, (name, i, hex(at[which]), hex(addr))
            else:
                card.must("free", at[which])
            assert card.look()["reserved"] == pages * 2 * MIB, (name, i)


def test_recorded_pools(driver):
    for name, threshold, every in (("threshold_history", 10**10, 500),
                                   ("often_history", 5 * 10**8, 37)):
        card, at = Card(driver, 150109880320, 0), {}
        pool = card.must("pool", threshold)
        for i, (which, size, offset, pages) in enumerate(recorded("h200_pool.inc", name), 1):
            if size:
                at[which] = card.must("take", pool, size, 0)
                assert at[which] == 0x302000000 + offset, (name, i)
            else:
                card.must("give", pool, at[which], 0)
            if i % every == 0:
                card.must("sync", 0)
            assert card.look()["reserved"] == pages * 32 * MIB, (name, i)


def test_recorded_streams(driver):
    """On several streams of an idle card, without the default stream."""
    for name in ("four_streams", "synced_streams"):
        card = Card(driver, 150109880320, 0, idle=1)
        pool = card.must("pool", ANY, 1)
        for i, (offset, size, pages, stream) in enumerate(recorded("h200_pool_streams.inc", name)):
            if size and not pages:
                card.must("sync", stream + 1)
                continue
            if size:
                assert card.must("take", pool, size, stream + 1) == 0x302000000 + offset, (name, i)
            else:
                card.must("give", pool, 0x302000000 + offset, stream + 1)
            assert card.look()["reserved"] == pages * 32 * MIB, (name, i)


if __name__ == "__main__":
    found = {}
    for one in sorted(glob.glob(os.path.join(HERE, "card_*.cases"))):
        found.update(cases(one, answers))
    main("test_card", {**found, **globals()})
