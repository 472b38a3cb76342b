#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of policies as text (tests/policies/README.md lists the steps), one test for each rule, in
TAP:

    rules.py BUILD/tests/drivers FILE.rules…

test_policy.c holds the policy and checks its promises after every call. A rule whose title
ends with "=> TEXT" must not hold, and TEXT is in the message: so the runner itself is tested."""
import collections
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from driven import UNITS, Driver, Wrong, total  # noqa: E402

CLASSES = "hit split grow map stitch release refused".split()
FAMILY = "current peak allocated freed".split()
COMMENT = re.compile(r'^((?:"[^"]*"|[^"])*?)(?:^|(?<=\s))#.*')  # not in quotes
SOAK = {"steps": 4000, "slots": 150, "max": 200 << 20, "seed": 1, "plain": 0, "failures": 0}
Block = collections.namedtuple("Block", "slot serial addr granted served")
Event = collections.namedtuple("Event", "kind bytes addr")


def number(text):
    value = total(text, {"max": 2**64 - 1}.get)
    if value is None:
        raise Wrong(f"'{text}' is no number")
    return value


def size_text(value):
    """64K, 1000"""
    unit = next((u for u in "TGMK" if value and value % UNITS[u] == 0), "")
    return f"{value // UNITS[unit]}{unit}"


def error_of(words):
    """The text of "-> error TEXT", or None where nothing stands."""
    if words and (len(words) != 3 or words[:2] != ["->", "error"]):
        raise Wrong(f"'{words[0]}': only -> error \"part of its message\" may follow")
    return words[2] if words else None


def expect_result(result, message, error=None):
    if result == 0 and error is not None:
        raise Wrong("no error")
    if result > 0:
        raise Wrong("out of memory")
    if result and (error is None or error not in message):
        raise Wrong(message)


class Run:
    """One rule, with the values of one row."""

    def __init__(self, driver):
        self.driver, self.open = driver, False
        self.forget()

    def forget(self):
        self.blocks, self.segments, self.next = {}, [], None
        self.logs = {"c": [], "j": []}

    def ask(self, *words):
        result, fields, before = self.driver.ask(*words)
        for kind, *rest in before:
            if kind == "t":
                self.segments.append(int(rest[0]))
            elif kind in self.logs:
                self.logs[kind].append(Event(rest[0], int(rest[1]), int(rest[2])))
        return result, fields, before

    def must(self, *words, error=None):
        result, fields, _ = self.ask(*words)
        expect_result(result, "\t".join(fields), error)
        return fields

    def address(self, text):
        """Without a name in it, it is counted from S0."""
        placed = []

        def find(word):
            placed.append(word)
            segment = re.fullmatch(r"S(\d+)", word)
            if segment and int(segment[1]) < len(self.segments):
                return self.segments[int(segment[1])]
            if word in self.blocks:
                return self.blocks[word].addr
            return self.next if word == "next" else None

        value = total(text, find)
        if value is None:
            raise Wrong(f"'{text}' is no number, block or segment")
        if not placed and not self.segments:
            raise Wrong(f"'{text}': there is no segment yet")
        return value + (0 if placed else self.segments[0])

    def address_text(self, addr):
        below = [(at, i) for i, at in enumerate(self.segments) if at <= addr]
        return f"S{max(below)[1]}+{size_text(addr - max(below)[0])}" if below else hex(addr)

    # ---- steps: each gets the words behind its own

    plain = {"at": "one number", "wait": "one number", "fail": "one number", "usage": "exact"}

    def step_policy(self, words):
        options, into, places, release = {"card": 64 << 30}, None, [], 0
        if not words:
            raise Wrong("which policy?")
        self.ask("close")
        self.open = False
        self.forget()
        end = words.index("->") if "->" in words else len(words)
        left = iter(words[1:end])
        for word in left:
            minor = word == "release" and re.fullmatch(r"2\.(\d+)", next(left, ""))
            if word in ("card", "context", "limit", "places"):
                into = word
            elif minor:
                release = 200 + int(minor[1])
            elif into is None or len(places) == 15:
                raise Wrong(f"'{word}': options are card, context, limit, places, release")
            elif into == "places":
                places.append(number(word))
            else:
                options[into], into = number(word), None
        error = error_of(words[end:])
        result, fields, _ = self.ask("policy", words[0], options["card"], options.get("context", 0),
                                     options.get("limit", 0), release, *places)
        self.open = result == 0
        expect_result(result, "\t".join(fields), error)

    def texts(self, words, refused):
        says = words.index("says") if "says" in words[:-1] else len(words)
        part = words[says + 1] if says < len(words) else ""
        for text in words[:says]:
            result, fields, _ = self.ask("parse", text)
            if not result and refused:
                raise Wrong(f"'{text}' is accepted")
            if result and (not refused or part not in fields[0]):
                raise Wrong(f"'{text}' is refused by '{fields[0]}'")

    def step_refused(self, words):
        self.texts(words, True)

    def step_accepted(self, words):
        self.texts(words, False)

    def step_alloc(self, words, names=()):
        options, sizes, wants, left = {"stream": 0, "pool": 0}, [], [], iter(words)
        for word in left:
            if word == "->":
                wants = list(left)
            elif word in options:
                options[word] = number(next(left, "which"))
            else:
                sizes.append(word)
        if not sizes:
            raise Wrong("how many bytes?")
        error = wants[wants.index("error") + 1] if "error" in wants[:-1] else None
        plain = [w for w in wants if w not in ("oom", "error", error)]
        if ("oom" in wants or error is not None) and plain:
            raise Wrong("a request that is refused has no block")
        names = names_of(names)
        count = max(len(names), len(sizes))
        if names and len(names) != count:
            raise Wrong(f"{len(names)} names for {count} requests")
        places = [w[1:] for w in plain if w[0] == "@"]
        classes = [w for w in plain if w in CLASSES]
        granted = [w for w in plain if w[0] != "@" and w not in CLASSES]
        for what, given in (("sizes", sizes), ("granted sizes", granted), ("addresses", places),
                            ("classes", classes)):
            if len(given) > 1 and len(given) != count:
                raise Wrong(f"{len(given)} {what} for {count} requests")
        for i in range(count):
            size, *want = (w[i % len(w)] if w else None for w in (sizes, granted, places, classes))
            result, fields, _ = self.ask("alloc", number(size), options["stream"], options["pool"])
            if "oom" in wants:
                if result <= 0:
                    raise Wrong(f"alloc {size}: not refused")
                continue
            expect_result(result, "\t".join(fields), error)
            if result:
                continue
            block = Block(*map(int, fields[:4]), fields[4])
            if names:
                self.blocks[names[i]] = block
            self.expect_block(size, block, *want)
            self.next = block.addr + block.granted

    def expect_block(self, size, block, granted, place, served):
        if granted and block.granted != number(granted):
            raise Wrong(f"alloc {size}: {size_text(block.granted)} granted, expected {granted}")
        if served and block.served != served:
            raise Wrong(f"alloc {size}: served by {block.served}, expected {served}")
        if place:
            relation = place[0] if place[0] in "!<>" else ""
            wanted = self.address(place[len(relation):])
            holds = {"": block.addr == wanted, "!": block.addr != wanted, "<": block.addr < wanted,
                     ">": block.addr > wanted}
            if not holds[relation]:
                raise Wrong(f"the block is at {self.address_text(block.addr)}, expected {relation}"
                            f"{self.address_text(wanted)}")

    def step_grants(self, words):
        for word in words:
            request, colon, granted = word.partition(":")
            if not (request and colon and granted):
                raise Wrong(f"'{word}': request:granted is wanted")
            self.step_alloc([request, "->", granted])

    def held(self, call, name, state, error=None):
        block = self.blocks.get(name)
        if not block or self.must(call, block.slot, block.serial, error=error) == ["gone"]:
            raise Wrong(f"no block '{name}' is {state}")

    def step_free(self, words):
        end = words.index("->") if "->" in words else len(words)
        error = error_of(words[end:])
        if words[:end] == ["all"]:
            self.must("free-all", error=error)
            return
        for name in names_of(words[:end]):
            self.held("free", name, "held", error)

    def step_request(self, words):
        for name in words:
            self.held("request", name, "live")

    def step_trim(self, words):
        pool = number(words[1]) if words[:1] == ["pool"] and len(words) > 1 else 0
        self.must("trim", pool, error=error_of(words[2 * (words[:1] == ["pool"]):]))

    def step_sync(self, words):
        if words and (words[0] != "stream" or len(words) != 2):
            raise Wrong("which stream?")
        self.must("sync", *map(number, words[1:]))

    def step_soak(self, words):
        values = dict(SOAK)
        for word in words:
            key, equals, value = word.partition("=")
            if key not in SOAK or bool(equals) != (key not in ("plain", "failures")):
                raise Wrong(f"'{word}': steps=, slots=, max=, seed=, plain or failures")
            values[key] = number(value) if equals else 1
        if not (1 <= values["slots"] <= 1024 and values["max"]):
            raise Wrong("1 to 1024 slots, of 1 byte at least")
        self.must("soak", *values.values())

    def step_expect(self, words):
        if not words:
            raise Wrong("what is expected?")
        if len(words) % 2:
            raise Wrong(f"{words[-1]}: a value is wanted")
        seen = {}
        for kind, *rest in self.ask("look")[2]:
            if kind == "v":
                seen.setdefault(rest[0], int(rest[1]) % 2**64)
        for key, want in zip(words[::2], words[1::2]):
            parts = want.split("/")
            if len(parts) not in (1, len(FAMILY)):
                raise Wrong(f"{key}: current/peak/allocated/freed are wanted")
            names = [key] if len(parts) == 1 else [f"{key}.{part}" for part in FAMILY]
            for name, one in zip(names, parts):
                if name not in seen:
                    raise Wrong(f"there is nothing called '{name}'")
                got, bound = seen[name], number(one.lstrip("<>"))
                holds = {"<": got < bound, ">": got > bound}.get(one[0], got == bound)
                if not holds:
                    raise Wrong(f"{name} is {size_text(got)}, expected {one}")

    def step_calls(self, words):
        self.look_at("c", "mrfx", words)

    def step_journal(self, words):
        self.look_at("j", "afmu", words)

    def look_at(self, which, kinds, words):
        """"..." stands for all but the last ones."""
        log, self.logs[which] = self.logs[which], []
        i = 0
        for left, word in zip(itertools.count(len(words) - 1, -1), words):
            if word == "...":
                i = max(i + left, len(log)) - left
                continue
            if word[0] not in kinds:
                raise Wrong(f"'{word}' does not begin with one of {kinds}")
            if i >= len(log) or not self.is_event(log[i], word):
                self.differs(log)
            i += 1
        if i != len(log):
            self.differs(log)

    def is_event(self, event, word):
        """m2M, m2M@S0 or m2M..3M"""
        sizes, at, place = word[1:].partition("@")
        low, dots, high = sizes.partition("..")
        return (event.kind == word[0] and
                number(low) <= event.bytes <= number(high if dots else low) and
                (not at or event.addr == self.address(place)))

    def differs(self, log):
        was = [f"{e.kind}{size_text(e.bytes)}@{self.address_text(e.addr)}" for e in log]
        raise Wrong("it was " + (" ".join(was) or "nothing"))

    def step(self, words):
        names = words[:words.index("=")] if "=" in words else []
        word, *rest = words[len(names) + ("=" in words):] or ["="]
        run = getattr(self, "step_" + word, None) or self.plain.get(word)
        if not run or ("=" in words and word != "alloc"):
            raise Wrong(f"there is no step '{word}'")
        if not self.open and word not in ("policy", "refused", "accepted"):
            raise Wrong(f"{word}: no policy is open")
        if callable(run):
            run(rest, names) if word == "alloc" else run(rest)
        elif len(rest) != 1:
            raise Wrong(run + " is wanted")
        else:
            self.must(word, rest[0] if word == "usage" else number(rest[0]))


def names_of(words):
    """a, or b0..b7 for eight of them"""
    names = []
    for word in words:
        many = re.fullmatch(r"([a-z]+)(\d+)\.\.[a-z]+(\d+)", word)
        if not many and not re.fullmatch("[a-z0-9]+", word):
            raise Wrong(f"'{word}' is no name of a block")
        last = int(many[3]) if many else 0
        if many and not int(many[2]) <= last < 1024:
            raise Wrong(f"'{word}': too many blocks, or too long a name")
        names += [f"{many[1]}{i}" for i in range(int(many[2]), last + 1)] if many else [word]
    return names


# ---- files -------------------------------------------------------------------------------------


def cut(text):
    """The steps of a line, each a list of words; quoted text is one word."""
    steps = [[]]
    for quoted, end, word in re.findall(r'[ \t]*(?:("[^"]*")|(;)|([^ \t;]+))', text):
        if word.startswith('"'):
            raise Wrong("a quote is not closed")
        if end:
            steps.append([])
        else:
            steps[-1].append(quoted[1:-1] if quoted else word)
    return [step for step in steps if step]


def read(path):
    """[(title, line, steps, fault)], steps: [(line, text)]"""
    sections = []
    with open(path, encoding="utf-8") as file:
        for line, text in enumerate(file, 1):
            text = COMMENT.sub(r"\1", text.rstrip("\n")).rstrip()
            stripped = text.lstrip("\t")
            indent = len(text) - len(stripped)
            if not text:
                continue
            if indent == 0 and text[0] != " ":
                sections.append([text, line, [], None])
                continue
            if not sections:
                sections.append(["", line, [], None])
            steps = sections[-1][2]
            fault = ("steps are indented by tabs" if stripped[0] == " " else
                     "this is indented, but there is nothing above it"
                     if not sections[-1][0] or (indent > 1 and not steps) else None)
            if fault:
                sections[-1][3] = sections[-1][3] or (line, fault)
            elif indent > 1:
                steps[-1] = (steps[-1][0], steps[-1][1] + " " + stripped)
            else:
                steps.append((line, stripped))
    return sections


def rows_of(steps, where):
    """The values of "for $a $b …" in the first step, and the steps behind it."""
    if not steps or not steps[0][1].startswith("for "):
        return [], [()], steps
    where[0] = steps[0][0]
    words = (cut(steps[0][1][4:]) or [[]])[0]
    names = list(itertools.takewhile(lambda w: w.startswith("$"), words))
    values = words[len(names):]
    if not names or not values or len(values) % len(names):
        raise Wrong(f"for: {len(values)} values for {len(names)} names")
    return names, [values[i:i + len(names)] for i in range(0, len(values), len(names))], steps[1:]


def run_section(driver, section, where):
    """where[0] is the line that runs, where[1] the row."""
    _, where[0], steps, fault = section
    if fault:
        where[0] = fault[0]
        raise Wrong(fault[1])
    if not steps:
        raise Wrong("the title has no steps")
    names, rows, steps = rows_of(steps, where)
    known = re.compile("|".join(map(re.escape, names)) or "$^")
    for row in rows:
        run, values = Run(driver), dict(zip(names, row))
        where[1] = f" ({names[0]} {row[0]})" if names else ""
        for where[0], text in steps:
            parts = cut(known.sub(lambda m: values[m[0]], text))
            times = 1
            if parts and parts[0][0] == "repeat":
                times = number(parts[0][1]) if len(parts[0]) > 1 else 10001
                parts[0] = parts[0][2:]
                if times > 10000:
                    raise Wrong("repeat up to 10000 times")
            for words in itertools.chain.from_iterable(itertools.repeat(parts, times)):
                run.step(words)
        driver.ask("close")


def run_file(driver, path):
    sections, failed = read(path), 0
    print(f"1..{len(sections)}")
    for n, section in enumerate(sections, 1):
        title, _, wanted = section[0].partition(" => ")
        where, message = [0, ""], None
        try:
            run_section(driver, section, where)
        except Wrong as wrong:
            message = f"{path}:{where[0]}{where[1]}: {wrong}"
            driver.end()
        holds = message is None if not wanted else message is not None and f":{wanted}" in message
        failed += not holds
        print(f"{'ok' if holds else 'not ok'} {n} - {title}")
        if not holds:
            print(f"# {message or 'it holds, but it should not: ' + wanted}", file=sys.stderr)
    return failed + (not sections)


def main():
    driver = Driver(os.path.join(sys.argv[1], "test_policy"))
    failed = sum(run_file(driver, path) for path in sys.argv[2:])
    return bool(failed) or driver.end() not in (0, None) or len(sys.argv) < 3


if __name__ == "__main__":
    sys.exit(main())
