#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the readers make of files, in TAP: readers.py BUILD/tests/drivers

readers/*.cases has small files as text, and behind each what was read, or why it was refused and
where (CASES_REWRITE=1 writes that again). Lines that begin with "!" go in front of a file:

    !options device=0   the reader's options
    !escapes            the file holds C's escapes

Pickles are written as text, in the words of three dialects: Python's protocol 4, its protocol 2,
and libtorch:

    { key value … }   [ item … ]   ( item … )   a dict, a list, a tuple (of plain values)
    12  0x1f  S0+2M  -5  0.6  true  false  none  numbers and constants
    word  "text with \\xNN"                       strings
    &name VALUE … *name                          one object at two places (through the memo)
    $word                                        a string, once: fetched when it is there already
    !bytes                                       opcodes as they are, with C's escapes
    @block @segment @entry @oom @annotation      the dicts of a snapshot, see DICTS"""
import os
import re
import sqlite3
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from driven import Driver, in_lines, in_parts, put, said, total, trace_main, unescape  # noqa: E402

PYTHON, PYTHON2, LIBTORCH = DIALECTS = range(3)
S0, S1, T0 = 0x7f0000000000, 0x7f1000000000, 1795186186043381
NAMES = {"S0": S0, "S1": S1, "T0": T0}
# as PyTorch 2.11 writes them; $1 and so on are the words behind the name; a segment is left open
# in its list of blocks
MORE = 'compile_context "N/A" user_metadata "" }'
DICTS = {
    "@block": (4, "{ address $1 size $2 requested_size $3 state $4 frames [ ] }"),
    "@segment": (6, "{ device $1 address $2 total_size $3 stream $5 segment_type $4 "
                    "segment_pool_id ( $6 0 ) is_expandable false blocks ["),
    "@entry": (5, "{ action $1 addr $2 size $3 stream $4 time_us $5 " + MORE),
    "@oom": (4, "{ action oom device_free $1 size $2 stream $3 time_us $4 " + MORE),
    "@annotation": (3, "{ name $1 stage $2 device 0 time_us $3 }"),
}
TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\S+)', re.S)


class Pickle:
    def __init__(self, dialect, text=None):
        self.dialect, self.data, self.memo, self.known = dialect, bytearray(), 0, {}
        if text is not None:
            self.begin()
            self.text(text)
            self.data += b"."

    def begin(self):
        frame = b"\x95" + struct.pack("<Q", 12345)
        self.data += b"\x80\x04" + frame if self.dialect == PYTHON else b"\x80\x02"

    def remember(self):
        if self.dialect == PYTHON:
            self.data += b"\x94"
        else:
            wide = self.memo > 255
            self.data += b"r" + struct.pack("<I", self.memo) if wide else b"q%c" % self.memo
        self.memo += 1

    def string(self, text):
        if self.dialect == PYTHON and len(text) < 256:
            self.data += b"\x8c%c" % len(text) + text
        else:
            self.data += b"X" + struct.pack("<I", len(text)) + text
        self.remember()

    def number(self, value):
        value -= (value >> 63) << 64
        if 0 <= value < 256:
            self.data += b"K%c" % value
        elif 0 <= value < 65536:
            self.data += b"M" + struct.pack("<H", value)
        elif -2**31 <= value < 2**31:
            self.data += b"J" + struct.pack("<i", value)
        else:
            size = 8
            sign = -1 if value < 0 else 0
            while self.dialect != LIBTORCH and size > 1 and value >> (8 * size - 9) == sign:
                size -= 1
            self.data += b"\x8a%c" % size + value.to_bytes(size, "little", signed=True)

    def open(self, op, named):
        """EMPTY_LIST or EMPTY_DICT, and MARK. libtorch remembers only what it needs again."""
        self.data += op
        if named or self.dialect != LIBTORCH:
            self.remember()
        self.data += b"("

    def fetch(self, name):
        memo = self.known[name]
        self.data += b"h%c" % memo if memo < 256 else b"j" + struct.pack("<I", memo)

    def once(self, name):
        """A string, fetched when it is there already."""
        if name in self.known:
            self.fetch(name)
        else:
            self.known[name] = self.memo
            self.string(name.encode())

    def value(self, word):
        number = total(word, NAMES.get)
        constant = {"true": b"\x88", "false": b"\x89", "none": b"N"}.get(word)
        if word[0] == '"':
            self.string(unescape(word[1:-1]))
        elif constant:
            self.data += constant
        elif number is not None:
            self.number(number)
        elif word[0].isdigit():
            self.data += b"G" + struct.pack(">d", float(word))
        else:
            self.string(unescape(word))

    def text(self, text):
        words = [m[1] for m in TOKEN.finditer(text)]
        i, named = 0, False
        while i < len(words):
            word, i = words[i], i + 1
            if word[0] in "{[":
                self.open(b"}" if word[0] == "{" else b"]", named)
            elif word[0] in "}]":
                self.data += b"u" if word[0] == "}" else b"e"  # SETITEMS, APPENDS
            elif word[0] == "(":
                end = words.index(")", i)
                for one in words[i:end]:
                    self.text(one)
                self.data += bytes([0x84 + end - i])
                self.remember()
                i = end + 1
            elif word[0] == "&":
                self.known[word[1:]] = self.memo
            elif word[0] == "*":
                self.fetch(word[1:])
            elif word[0] == "$":
                self.once(word[1:])
            elif word[0] == "!":
                self.data += unescape(word[1:])
            elif word[0] == "@":
                count, dict_ = DICTS[word]
                self.text(re.sub(r"\$(\d)", lambda m: words[i + int(m[1]) - 1],
                                 dict_))  # pylint: disable=cell-var-from-loop
                i += count
            else:
                self.value(word)
            named = word[0] == "&"


# ---- answers -----------------------------------------------------------------------------------


def directives(text):
    """(options, words, the file itself)"""
    found = re.match(r"(?:!.*\n)*", text)[0]
    options = re.search(r"^!options (.*)$", found, re.M)
    return options[1] if options else "", found, text[len(found):]


def answer_file(driver, text):
    options, found, body = directives(text)
    # with escapes, the last line ends only if it says so
    put(unescape(body)[:-1] if "!escapes" in found else body.encode("latin-1"))
    return said(driver, "read", options)


def answer_minimalloc(driver, text):
    """The format is written, too: what was read comes out of that as it was, but for moments,
    which are numbered."""
    put(unescape(text))
    first = said(driver, "read")
    assert driver.ask("minimalloc", "second.csv")[0] == 0
    os.rename(os.path.join(Driver.folder, "second.csv"), os.path.join(Driver.folder, "input"))
    again = [re.sub(r" time \d+", "", t) for t in (first, said(driver, "read"))]
    assert again[0] == again[1], again
    return first


def answer_line(driver, call, _):
    put(unescape(call))
    return said(driver, "read")


def answer_sql(driver, text):
    path = os.path.join(Driver.folder, "input")
    os.remove(path)
    db = sqlite3.connect(path)
    db.executescript(text)
    db.close()
    return said(driver, "read")


def answer_sidecar(driver, call, _):
    put(unescape(call))
    return said(driver, "sidecar")


def snapshot(driver, body, options):
    """However it is written, it reads the same; libtorch remembers no lists and dicts. Where an
    error is differs."""
    answers = []
    for dialect in DIALECTS if not set("&!") & set(body) else (PYTHON, PYTHON2):
        put(Pickle(dialect, body).data)
        answers.append(re.sub(r"at \d+: ", "at 0: ", said(driver, "snapshot", options), count=1))
        assert not re.match(r"at \d", answers[-1]) or "'snapshot'" in answers[-1], answers[-1]
    assert len(set(answers)) == 1, answers
    return answers[0]


def answer_snapshot(driver, text):
    options, _, body = directives(text)
    return snapshot(driver, body, options)


def answer_snapshot_line(driver, call, _):
    options, bar, body = call.partition(" | ")
    return snapshot(driver, body if bar else call, options if bar else "")


MARKS = {"time_us": "time_us T0", "compile_context": "compile_context N/A", "user_metadata": 'user_metadata ""',
         "pool_id": "pool_id ( 0 0 )", "annotations": "external_annotations [ ]", "host": "host_traces [ ]",
         "settings": "max_split_size -1", "reuse": "graph_capture_record_stream_reuse false",
         "threshold": "max_round_threshold 1"}


def answer_release(driver, call, _):
    words, _, conf = call.partition(" conf ")
    words = words.split()

    def marks(*names):
        return " ".join(MARKS[n] for n in names if n in words)

    entry = marks("time_us", "compile_context", "user_metadata", "pool_id")
    entry = f"{{ action alloc addr S0 size 512 stream 0 {entry} }}" if "entries" in words else ""
    settings = marks("settings", "reuse", "threshold") + (f" PYTORCH_CUDA_ALLOC_CONF {conf}" if conf else "")
    read = snapshot(
        driver, f"{{ device_traces [ [ {entry} ] ] segments [ " +
        ("" if entry else "@segment 0 S1 2M small 0 0 @block S1 2M 0 inactive ] } ") + "] " +
        (f"allocator_settings {{ {settings} }} " if "settings" in words else "") +
        marks("annotations", "host") + " }", "")
    found = re.search("torch ([0-9.]+ to [0-9.]+)", read)
    return found[1] if found else read


def unpickled(driver, data):
    put(data)
    return said(driver, "unpickle")


def answer_unpickle(driver, call, _):
    return unpickled(driver, unescape(call[1:]) if call[0] == "|"
                     else b"\x80\x04" + unescape(call) + b".")


# ---- the pickle machine: opcodes, and what is long or deep ---------------------------------------

BUILDERS = {
    "c": "GLOBAL", "\x93": "STACK_GLOBAL", "R": "REDUCE", "b": "BUILD", "i": "INST", "o": "OBJ",
    "\x81": "NEWOBJ",
    "\x92": "NEWOBJ_EX", "P": "PERSID", "Q": "BINPERSID", "\x82": "EXT1", "\x83": "EXT2",
    "\x84": "EXT4",
    "\x96": "BYTEARRAY8", "\x97": "NEXT_BUFFER"}
UNKNOWN = "\xff\x98STUVILFgp012dlBC\x8e\x8f\x90\x91\0"


def test_opcodes_that_are_refused(driver):
    """Those that name, build or call; those of other protocols and values. After the protocol and
    two lists."""
    for opcode in [*BUILDERS, *UNKNOWN]:
        got = unpickled(driver, b"\x80\x04]]" + opcode.encode("latin-1") + b"x\ny\n.")
        want = f"at 4: 'test' holds the unknown pickle opcode 0x{ord(opcode):02x} at byte 4"
        if opcode in BUILDERS:
            want = (f"at 4: 'test' holds the pickle opcode {BUILDERS[opcode]} at byte 4; "
                    "a snapshot is plain data, and only that is read")
        assert got == want, (got, want)


def test_long_number(driver):
    """It is longer than any buffer, and passed over."""
    data = b"\x80\x04](\x8b" + struct.pack("<I", 700000) + bytes(i & 255
                                                                 for i in range(700000)) + b"K\7e."
    assert unpickled(driver, data) == "[too wide, 7]"


def test_long_texts(driver):
    for i, size in enumerate((0, 1, 7, 8, 9, 255, 256, 65000, 65536, 300000, 1000000)):
        for dialect in DIALECTS:
            text = chr(ord("a") + i) * size
            b = Pickle(dialect)
            b.begin()
            b.string(text.encode())
            b.data += b"."
            assert re.fullmatch(re.escape(text) + r" \(\d+\)",
                                unpickled(driver, b.data)), (size, dialect)


def test_long_file(driver):
    """The window of the input moves many times."""
    values, b = [i << i % 23 for i in range(300000)], Pickle(PYTHON)
    b.begin()
    b.text("[")
    for i, value in enumerate(values):
        if i % 1000 == 999:
            b.text("] !(")
        b.number(value)
    b.text("] !.")
    assert unpickled(driver, b.data) == "[" + ", ".join(map(str, values)) + "]"


def test_deep_nesting(driver):
    for depth in (100, 900, 2000, 100000):
        b = Pickle(PYTHON)
        b.begin()
        head = bytes(b.data)
        got = unpickled(driver, head + b"]\x94(" * depth + b"e" * depth + b".")
        if depth > 1000:
            assert "nested too deeply" in got, got[:200]
            continue
        assert got == "[" * depth + "]" * depth
        # without marks there is no limit to mind, and nothing recurses
        deeper = head + b"]" * (depth + 1) + b"a" * depth + b"."
        assert unpickled(driver, deeper) == "[" * (depth + 1) + "]" * (depth + 1)


# ---- many entries: read by template --------------------------------------------------------------

# how entries are written; all read the same, but for what the last three add
ONE_BY_ONE, REMEMBERED, FAR_REMEMBERED, WITH_FRAMES, WITH_POOLS, WITH_BOTH = STYLES = range(6)
ACTIONS = ["alloc", "free_requested", "free_completed"]


class Roll:
    """Numbers below 2^31, the same for the same seed."""

    def __init__(self, seed):
        self.seed = seed

    def below(self, most):
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.seed >> 33) % most


class History(Pickle):
    """n times an alloc, half of them with a free; the list is left open. uniform: numbers in one
    width each, as most of a real history has them."""

    def __init__(self, dialect, style, uniform, count=1000):
        super().__init__(dialect)
        self.style, self.rng = style, Roll(1)
        rng = Roll(5)
        self.begin()
        self.text("{ segments [ ]")
        if style >= FAR_REMEMBERED:
            self.filler()
        self.text("device_traces [ [")
        for i in range(count):
            size = 1 + rng.below(1 << 4 + rng.below(34))
            addr = S0 + 512 * i if rng.below(3) else 512 * (i + 1)
            stream = 0 if rng.below(9) else 70000
            freed, turned = rng.below(2), not rng.below(50)
            if uniform:
                addr, size, stream, turned = S0 + 512 * i, 512 + size % 60000, 0, False
            stack = self.rng.below(5) if style in (WITH_FRAMES,
                                                   WITH_BOTH) and self.rng.below(3) else None
            pool = self.rng.below(3) if style in (WITH_POOLS, WITH_BOTH) else None
            for action in range(3 if freed else 1):
                self.entry(action, addr, size, stream, T0 + 3 * i + action, turned, stack, pool)
            if i % 1000 == 999:
                self.text("] !(")

    def filler(self):
        """Memo indices that need LONG_BINGET, then what the entries refer to."""
        self.text("filler [" + " x" * 300)
        for i in range(5):
            self.text(f"&s{i} [ {{ filename a.py line {i} name f }} ]")
        for i in range(3):
            self.text(f"&p{i} ( {i} 0 )")
        self.text("]")

    def entry(self, action, addr, size, stream, time, turned=False, stack=None, pool=None):
        """Keys are fetched from the memo as by Python, now and then in another order."""
        self.open(b"}", False)
        keys = [("action", ACTIONS[action]), ("addr", addr), ("size", size), ("stream", stream),
                ("time_us", time),
                ("compile_context", "N/A"), ("user_metadata", "")]
        if self.style == ONE_BY_ONE:
            for key, value in keys:
                self.string(key.encode())
                (self.number if isinstance(value, int)
                 else lambda text: self.string(text.encode()))(value)
            self.data += b"u"
            return
        for key, value in [keys[i] for i in ((2, 0, 1, 3, 4, 5) if turned else range(6))]:
            self.once(key)
            if isinstance(value, int):
                self.number(value)
            elif key == "action":
                self.once(value)
            else:
                self.string(value.encode())
        if pool is not None:  # a tuple of its own, or the last one: of the entry before, often
            self.text(f"$pool_id &p{pool} ( {pool} 0 )" if self.rng.below(2)
                      else f"$pool_id *p{pool}")
        self.once("user_metadata")
        self.once("")
        if stack is not None:
            self.once("frames")
            self.fetch(f"s{stack}")
        self.data += b"u"

    def read(self, driver):
        self.text("] ] } !.")
        put(self.data)
        return said(driver, "snapshot")


def events_of(text):
    return [line for line in text.split("\n") if re.match("alloc|free|refused|trim|mark", line)]


def test_many_entries(driver):
    """However it is written, it reads the same. Protocol 2 of Python knows no templates."""
    for uniform in (False, True):
        first = events_of(History(PYTHON2, ONE_BY_ONE, uniform).read(driver))
        assert len(first) > 1000 * 4 / 3
        for style in STYLES:
            plain = History(PYTHON2, style, uniform).read(driver)
            assert [re.sub(" (stack|pool) [0-9]+", "", e) for e in events_of(plain)] == first, style
            for dialect in (PYTHON, LIBTORCH):
                assert History(dialect, style, uniform).read(driver) == plain, (style, dialect)
            assert len(re.findall("(?m)^stack ", plain)) == (5 if style in (WITH_FRAMES, WITH_BOTH)
                                                             else 0)
            pools = re.search("; pools ([^;\n]*)", plain)
            assert (pools[1].count("(") if pools else 1) == (3 if style >= WITH_POOLS
                                                             else 1), plain[:300]


def answer_entry(driver, call, _):
    """ "these words / others": an entry with one thing replaced, with templates and without."""
    good = ("{ $action $alloc $addr S1 $size 512 $stream 0 $time_us T0+30000 "
            "$compile_context N/A $user_metadata $ }")
    words, others = call.split(" / ")
    assert words in good
    answers = set()
    for dialect in (PYTHON, PYTHON2):
        history = History(dialect, REMEMBERED, True, 3000)
        history.text(good.replace(words, "" if others == "nothing" else others, 1))
        for i in range(5):
            history.entry(0, S1 + 4096 * (i + 1), 7, 0, T0 + 40000 + i)
        read = history.read(driver)
        error = re.match(r"at \d+: (.*)", read)
        if error:  # where it is differs
            answers.add(re.sub(r" byte .*", " byte ...", error[1], flags=re.S))
            continue
        events = events_of(read)
        kinds = "alloc free free_requested free_completed trim refused mark".split()
        word, time = events[-6].split(), re.search(r" time (\d+)", events[-6])
        size = re.search("bytes ([0-9]+)", events[-6])[1]
        answers.add(f"{len(events)} events, {kinds.index(word[0])} of {size} bytes at "
                    f"{time[1] if time else 0} us")
    assert len(answers) == 1, answers
    return answers.pop()


def test_almost_complete(driver):
    """A completion folds into the request right before it only if both are of one block and
    stream."""
    for dialect in (PYTHON, PYTHON2):
        history, time = History(dialect, REMEMBERED, True, 3000), T0 + 30000
        for k in range(2):
            x, y = (S1, 512, 0, time), (S1 + 512, 512, 0, time + 1)
            time += 2
            for action, (addr, size, stream, at) in ((0, x), (0, y), (1, y), (1, x)):
                history.entry(action, addr, size, stream, at)
            history.entry(2, y[0], 512, 3 * k, y[3])  # completed as if it were of another stream
            history.entry(2, x[0], 512, 0, x[3])
            for action in range(3):
                history.entry(action, y[0] + 4096, 512, 3 if action == 2 else 0, y[3])
        letters = {"alloc": "a", "free": "f", "free_requested": "r", "free_completed": "c"}
        kinds = "".join(letters[e.split()[0]] for e in events_of(history.read(driver))[-18:])
        assert kinds == "aarrccarcaarrccarc", kinds


def test_refers_to_the_one_before(driver):
    """Each entry takes its action from what the one before remembered: rows that are matched
    together must not do so before that one is done."""
    b = History(PYTHON, FAR_REMEMBERED, True, 0)
    for i in range(500):
        b.text(f"{{ $action $alloc $addr {S0 + 512 * i} $size 300 $compile_context &alloc alloc }}")
    events = events_of(b.read(driver))
    assert [e.split()[0] for e in events] == ["alloc"] * 500
    assert [int(e.split("@")[1], 16) for e in events] == [S0 + 512 * i for i in range(500)]


FILES = {"readers/csv": in_parts(answer_file), "readers/jsonl": in_parts(answer_file),
         "readers/rmm": in_parts(answer_file),
         "readers/umpire": in_parts(answer_file), "readers/kineto": in_parts(answer_file),
         "readers/minimalloc": in_parts(answer_minimalloc), "readers/nsys": in_parts(answer_sql),
         "readers/refused": in_lines(answer_line), "readers/sidecar": in_lines(answer_sidecar),
         "readers/torch": in_parts(answer_snapshot),
         "readers/torch_refused": in_lines(answer_snapshot_line),
         "unpickle": in_lines(answer_unpickle), "entries": in_lines(answer_entry),
         "releases": in_lines(answer_release)}


if __name__ == "__main__":
    trace_main(globals(), {os.path.join(HERE, f + ".cases"): how for f, how in FILES.items()})
