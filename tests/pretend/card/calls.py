#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of CUDA on the pretended card, in TAP: calls.py BUILD/tests/drivers

Each case of calls, workspaces, memory, beside, talk and shared.cases runs in a process of its own.
A line is a call with its arguments, and what it returned if that is not 0; or a question with its
answer. Of several in a line ("call; call") the last one answers, and those before must succeed. A
name is that of an entry, of another function of the card's, or of the C library. Arguments are
numbers, variables, &variable, @function, 'text, and 0.5f; a variable has room for eight numbers.
Beside calls:

    N x CALL · do CALL         so many times; whatever it returns
    times N: LINE              the line so many times
    define NAME LINE           "NAME A B" is this line with A for $1 and B for $2
    yes CALL · v <- CALL       it returns true, as 1; what it returns, of 64 bits
    set NAME=VALUE · unset NAME  the environment; card NAME: one of CARDS
    v = 1 2 3 · *ADDR = 1 2 3  numbers of 32 bits; longs ADDR 1 2 3: of 64
    v · v.2 · a < b            what is in it; 1 if it is less
    ints ADDR N · sizes ADDR N · byte ADDR AT · float ADDR · text ADDR · null v
    left · total · used        bytes of the current card; used: MiB
    group RANKS RANK           MiB that a group of NCCL's holds
    kernel ADDR 'NAME KIND ARCH FLAGS …  a function that launches a kernel, the code of its file
    rest MS · watchdog MS CALL  in the thread of NCCL's watchdog; with MS > 0 again, after a rest

Cases of two ranks are two processes, with variables `me`, `peer` and `comm`. A line that begins
with a rank is only for that one. `elapsed` is the ms since the case began, `give v` sends a
variable to the other, which says `take v`, and `theirs v` opens the other's descriptor."""
import ctypes
import os
import re
import signal
import struct
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from pretended import SANITIZED, Library, in_a_process  # noqa: E402
from driven import Skipped, Wrong, cases, in_lines, main, total  # noqa: E402

MIB = 1 << 20
SMALL = ("name=Small card;total=4294967296;context=536870912;libraries=0;count=3;cc=8.9;sms=58;"
         "nvlink=0")
CARDS = {
    "h100": "name=NVIDIA H100 80GB HBM3;total=4294967296;context=524288000;count=2;cc=9.0;sms=132",
    "a10": "name=A10;total=23696375808;context=524288000;cc=8.6;sms=72;nvlink=0",
    "a100": "name=NVIDIA A100-SXM4-80GB;total=42949672960;context=524288000;cc=8.0;sms=108",
    "h200": "name=H200;total=150109880320;cc=9.0;sms=132"}
# that no group counts on (beside.c)
OF_RANKS = "total=1073741824;name=c;cc=8.0;sms=10;libraries=0"
LETTER = struct.Struct("9Q")
SAYS = {"text": lambda at, _: ctypes.string_at(at).decode(),
        "float": lambda at, _: f"{ctypes.c_float.from_address(at).value:g}",
        "null": lambda at, _: "no" if at else "yes",
        "ints": lambda at, n: " ".join(map(str, (ctypes.c_int32 * n).from_address(at))),
        "sizes": lambda at, n: " ".join(map(str, (ctypes.c_int64 * n).from_address(at)))}


def count_up(at):
    ctypes.c_int.from_address(at).value += 1


def set_origin(at, origin, _):
    """Stands for values/origins.cpp: counts at the place itself, from a high number if known."""
    ctypes.c_int.from_address(at).value += 1 + 100 * origin


class Calls:
    """The calls of a process."""

    def __init__(self, rank=None, ways=(None, None)):
        self.rank, (self.to, self.taken), self.process = rank, ways, 0
        self.library, self.variables, self.defined, self.kept = Library(), {}, {}, []
        self.begun = time.monotonic()
        self.own = {"count_up": ctypes.CFUNCTYPE(None, ctypes.c_void_p)(count_up),
                    "set_origin": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32,
                                                   ctypes.c_int)(set_origin)}

    # ---- numbers

    def variable(self, name):
        return self.variables.setdefault(name, (ctypes.c_uint64 * 8)())

    def find(self, word):
        """The value of a name; None: it has none."""
        if word[0] == "&":
            return ctypes.addressof(self.variable(word[1:]))
        if word[0] == "@":
            return ctypes.cast(self.own.get(word[1:]) or self.library.find(word[1:]),
                               ctypes.c_void_p).value
        if re.fullmatch(r"-?[\d.]+f", word):
            return struct.unpack("I", struct.pack("f", float(word[:-1])))[0]
        name, _, at = word.partition(".")
        return self.variables[name][int(at or 0)] if name in self.variables else None

    def number(self, word):
        if word[0] == "'":
            self.kept.append(ctypes.create_string_buffer(word[1:].encode()))
            return ctypes.addressof(self.kept[-1])
        value = total(word, self.find)
        if value is None:
            raise Wrong(f"no number: {word}")
        return value

    def call(self, name, *words):
        """What it returns, of 64 bits."""
        return self.library.find(name)(*(
            ctypes.c_float(float(word[:-1])) if re.fullmatch(r"[\d.]+f", word)
            else ctypes.c_uint64(self.number(word)) for word in words))

    # ---- lines

    def kernel(self, at, name, *codes):
        code = struct.pack("4I", 0xba55ed50, 0, 16 * len(codes), 0)
        for i in range(0, len(codes), 3):
            kind, arch, flags = map(self.number, codes[i:i + 3])
            code += struct.pack("12I", kind, 48, 0, 0, 0, 0, 0, arch, 0, 0, flags, 0)
        code = ctypes.create_string_buffer(code)
        file = (ctypes.c_uint64 * 3)(0, ctypes.addressof(code), 0)
        self.kept += [code, file]
        handle = self.library.find("__cudaRegisterFatBinary")(ctypes.byref(file))
        self.library.find("__cudaRegisterFunction")(
            *map(ctypes.c_uint64, (handle, self.number(at), 0, self.number(name))))

    def prepares(self, word, rest):
        """True: it was such a line, and is done."""
        if word == "set":
            os.environ.update([rest[0].split("=", 1)])
        elif word == "card":
            os.environ["CUFRAG_PRETEND"] = CARDS[rest[0]]
            del os.environ["CUDA_VISIBLE_DEVICES"]
        elif word == "unset":
            os.environ.pop(rest[0], None)
        elif word == "rest":
            time.sleep(self.number(rest[0]) / 1000)
        elif word == "kernel":
            self.kernel(*rest)
        elif word == "longs":
            ctypes.memmove(self.number(rest[0]), (ctypes.c_uint64 * (len(rest) - 1))(
                *map(self.number, rest[1:])), 8 * (len(rest) - 1))
        elif rest[:1] == ["="]:
            to = self.number(word[1:] if word[0] == "*" else "&" + word)
            numbers = [self.number(w) % 2**32 for w in rest[1:]]
            ctypes.memmove(to, struct.pack(f"{len(numbers)}I", *numbers), 4 * len(numbers))
        elif word == "give":
            os.write(self.to, LETTER.pack(os.getpid(), *self.variable(rest[0])))
        elif word == "take":
            self.process, *values = LETTER.unpack(os.read(self.taken, LETTER.size))
            self.variable(rest[0])[:] = values
        elif word == "theirs":
            file = f"/proc/{self.process}/fd/{self.number(rest[0])}"
            self.variable(rest[0])[0] = os.open(file, os.O_RDWR)
        else:
            return False
        return True

    def watchdog(self, ms, *call):
        said = []

        def look():
            ctypes.CDLL(None).prctl(15, b"pt_nccl_watchdg")  # PR_SET_NAME
            for pause in (0, ms)[:1 + (ms > 0)]:
                time.sleep(pause / 1000)
                said.append(self.call(*call))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return said[-1]

    def returned(self, word, rest):
        """What a call returned, of 32 bits; None: it is no call."""
        if rest[:1] == ["<-"]:
            self.variable(word)[0] = self.call(*rest[1:])
            return 0
        if word == "do":
            self.returned(rest[0], rest[1:])
            return 0
        if word == "yes":
            return self.call(*rest) & 1
        if word == "watchdog":
            return self.watchdog(self.number(rest[0]), *rest[1:])
        if rest[:1] == ["x"]:
            return [self.call(*rest[1:]) for _ in range(self.number(word))][-1]
        is_value = rest[:1] == ["<"] if rest else total(word, self.find) is not None
        return None if is_value or not self.library.find(word) else self.call(word, *rest)

    def asks(self, word, rest):
        """The number that it asks for."""
        if word in ("left", "total", "used"):
            sizes = (ctypes.c_uint64 * 2)()
            self.library.find("cudaMemGetInfo")(ctypes.byref(sizes), ctypes.byref(sizes, 8))
            return {"left": sizes[0], "total": sizes[1], "used": (sizes[1] - sizes[0]) // MIB}[word]
        if word == "group":
            return self.call("group_bytes", *rest) // MIB
        if word == "byte":
            return ctypes.c_uint8.from_address(self.number(rest[0]) + self.number(rest[1])).value
        return self.number(word) < self.number(rest[1]) if rest else self.number(word)

    def answer_one(self, line, expected):
        """Its answer; "": it succeeded."""
        word, *rest = (a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line))
        self.variable("elapsed")[0] = int(1000 * (time.monotonic() - self.begun))
        if self.prepares(word, rest):
            return ""
        if word in SAYS:
            return SAYS[word](self.number(rest[0]), self.number(rest[1]) if rest[1:] else 0)
        if word not in ("left", "total", "used", "group", "byte"):
            rc = self.returned(word, rest)
            if rc is not None:
                return str(ctypes.c_int32(rc).value) if rc % 2**32 else ""
        value = int(self.asks(word, rest))
        is_same = expected and total(expected, self.find) == value
        return expected if is_same else str(ctypes.c_int64(value).value)

    def answer(self, line, expected):
        to = re.match(r"(\d): ", line)
        if to:
            if int(to[1]) != self.rank:
                return expected
            line = line[3:]
        word, *rest = line.split()
        if word == "define":
            self.defined[rest[0]] = line.split(" ", 2)[2]
            return ""
        times = re.match(r"times (\d+): ", line)
        line = line[times.end():] if times else line
        for _ in range(int(times[1]) if times else 1):
            if word in self.defined:
                line = re.sub(r"\$(\d+)", lambda m: rest[int(m[1]) - 1], self.defined[word])
            *before, last = line.split("; ")
            for one in before:
                said = self.answer_one(one, "")
                if said:
                    raise Wrong(f"{one}: it failed: {said}")
            said = self.answer_one(last, expected)
        return said


# ---- processes


def one_alone(body):
    os.environ.update(CUFRAG_PRETEND=SMALL, CUDA_VISIBLE_DEVICES="1,0,5")
    return list(in_lines(Calls.answer)(Calls(), body))


def one_of_two(body, rank, ways):
    signal.alarm(100)  # the other may have failed
    os.environ["CUFRAG_PRETEND"] = OF_RANKS
    calls = Calls(rank, ways)
    calls.variable("me")[0], calls.variable("peer")[0] = rank, 1 - rank
    id_of_group = ctypes.create_string_buffer(b"\x2a", 128)
    comm = ctypes.byref(calls.variable("comm"))
    if calls.library.find("ncclCommInitRankScalable")(comm, 2, rank, 1, id_of_group, None):
        raise Wrong("no communicator")
    said = list(in_lines(Calls.answer)(calls, body))
    calls.call("ncclCommDestroy", "comm")
    return said


def alone(_, body):
    return in_a_process(one_alone, body)()


def two(_, body):
    """What rank 0 says, but rank 1 if that is another."""
    ways = [os.pipe() for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUFRAG_PRETEND_TALK"] = folder
        both = [in_a_process(one_of_two, body, i, (ways[1 - i][1], ways[i][0])) for i in range(2)]
        said = [wait() for wait in both]
    for end in (*ways[0], *ways[1]):
        os.close(end)
    return said[1] if said[1] != body else said[0]


def with_memory(run):
    """The pretended card gives addresses that AddressSanitizer keeps for itself."""

    def one(driver, body):
        if SANITIZED:
            raise Skipped("AddressSanitizer has these addresses")
        return run(driver, body)

    return one


# ---- files that the card writes and reads


def test_who_takes_memory_leaves_a_mark(driver):
    with tempfile.TemporaryDirectory() as folder:
        with_memory(alone)(driver, [f"set CUFRAG_RECORD={folder}; cudaGetDeviceCount &n"])
        assert not os.listdir(folder)
        alone(driver, [f"set CUFRAG_RECORD={folder}; cudaMalloc &p 1000"])
        assert sorted(name.lstrip("0123456789") for name in os.listdir(folder)) == [".begun", "card.0.0.1"]


def test_unknown_calls_are_errors_and_listed_once(driver):
    body = ["yes is_nothing 'cudaLaunchKernel -> 1", "yes is_nothing 'cublasGemmEx -> 1",
            "yes is_nothing 'cublasGetSomething", "yes is_nothing 'cudaNeverHeardOf",
            "yes is_nothing 'cusparseLtInit", "unknown 'cudaNeverHeardOf -> 801",
            "p <- find 'cuNeverHeardOf; null p -> yes",  # only looked for
            "unknown 'cublasGetSomething -> 15", "unknown 'cudaNeverHeardOf -> 801"]
    with tempfile.NamedTemporaryFile("r") as file:
        body.insert(0, f"set CUFRAG_PRETEND_CALLS={file.name}")
        assert alone(driver, body) == body, alone(driver, body)
        assert file.read() == "cudaNeverHeardOf\ncublasGetSomething\n"


def test_registers_are_those_that_ptxas_gave(driver):
    """Inductor tries more block sizes for kernels that take many, and none that keep many in local
    memory. 62 of one kernel and 40 of another, 72 bytes and 8, as ptxas writes them; half of the
    file has none."""
    info = b"".join(struct.pack("<BBHII", 4, *one) for one in (
        (0x2f, 8, 10, 62), (0x2f, 8, 11, 40), (0x11, 8, 10, 72), (0x11, 8, 11, 8)))
    info = info[:12] + struct.pack("<BBH", 1, 3, 0) + info[12:]
    head = struct.pack("<4sB11xHHIQQQIHHHHHH", b"\x7fELF", 2, 0, 190, 0, 0, 0, 64 + len(info), 0, 0,
                       0, 0, 64, 2, 0)
    sections = struct.pack("<II56xII16xQQII16x", 0, 3, 0, 0x70000000, 64, len(info), 0, 0)
    image = ctypes.create_string_buffer(head + info + sections)
    asked = "cuModuleGetFunction &k m 'k; cuFuncGetAttribute &v %d k; v -> %d"
    body = [f"cuModuleLoadData &m {ctypes.addressof(image)}; " + asked % (3, 72), asked % (4, 62),
            "cuModuleLoadData &m '//.version; " + asked % (3, 0), asked % (4, 32),
            "cuFuncGetAttribute &v 4 0x101; v -> 32",
            "cuModuleLoad &m '/nothing/there; " + asked % (4, 32)]
    with tempfile.TemporaryDirectory() as folder:
        for size in range(1, len(image)):
            with open(os.path.join(folder, str(size)), "wb") as file:
                file.write(image.raw[:size])
            body.append(f"cuModuleLoad &m '{file.name}; " +
                        asked % (4, 62 if size == len(image) - 1 else 32))
        said = alone(driver, body)
    assert said == body, [pair for pair in zip(said, body) if pair[0] != pair[1]]


if __name__ == "__main__":
    found = {}
    for one, how in (("calls", alone), ("workspaces", alone), ("memory", with_memory(alone)),
                     ("beside", with_memory(alone)), ("talk", two), ("shared", with_memory(two))):
        found.update(cases(os.path.join(HERE, one + ".cases"), how))
    main("", {**found, **globals()})
