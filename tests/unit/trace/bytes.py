#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bytes of files, plain and compressed, damaged and growing, in TAP: bytes.py BUILD/tests/drivers

test_trace.c reads each one by one, and once more in pieces of all sizes."""
import gzip
import lzma
import os
import random
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from driven import Driver, got, put, said, trace_main  # noqa: E402

QUICK = bool(os.environ.get("FRAG_TEST_QUICK"))
MEMORY, FILE = range(2)  # a file may be read ahead by a thread


def some(count):
    """They compress, but not to nothing."""
    return bytes(random.Random(count).choices(range(32), k=count))


def packed(driver, data):
    """(how, the bytes)"""
    put(data)
    driver.ask("zstd")
    return [("zstd", got()), ("gzip", gzip.compress(data)), ("xz", lzma.compress(data, preset=0))]


def unpacked(driver, data, *how):
    """What is read, or the message."""
    put(data)
    answers = {said(driver, "unpack", str(h)) or got("plain") for h in how or (MEMORY, FILE)}
    assert len(answers) == 1, answers
    return answers.pop()


def test_all_of_it(driver):
    for count in (1, 8, 9, 3000, 65536, 1000003, 2 << 20):
        data = some(count)
        for how, bytes_ in [("plain", data), *packed(driver, data)]:
            assert unpacked(driver, bytes_) == data, (how, count)
            if count == 3000:
                driver.ask("unpack-short")
    two = some(2500), some(3500)
    assert unpacked(driver, b"".join(map(gzip.compress, two))) == b"".join(two)


def test_plain_is_not_mangled(driver):
    for start in (b"BZh91AY", b"PK\3\4", b"070701", b"ustar", b"\x1f\x8b\7", b"#mtree\n", b"\x28\xb5\x2f",
                  b"begin 644 x\n", b"LZIP\1", b"\x80\4\x95", b"id,lower,upper,size\n"):
        assert unpacked(driver, start) == start


def test_nothing(driver):
    for _, data in [("plain", b""), *packed(driver, b"")]:
        assert "empty" in unpacked(driver, data)
    for there in range(2):
        os.remove(os.path.join(Driver.folder, "input"))
        if there:
            os.mkdir(os.path.join(Driver.folder, "input"))
        assert ("cannot read" if there else "cannot open") in said(driver, "unpack", str(FILE))
        if there:
            os.rmdir(os.path.join(Driver.folder, "input"))
        put(b"")


def test_cut(driver):
    """From where it is an archive; the last bytes of gzip and zstd are checksums."""
    for how, data in packed(driver, some(2000)):
        for n in range(6, len(data), 9 if QUICK else 1):
            answer = unpacked(driver, data[:n], MEMORY)
            assert re.match(r"at \d+: .*'input'", str(answer)), (how, n, answer)


def test_damage(driver):
    for how, data in packed(driver, some(20000)):
        half = len(data) // 2
        assert "decompress" in unpacked(driver, data[:half] + b"Z" * 40 + data[half + 40:]), how
    data = bytearray(gzip.compress(some(2 << 20)))
    data[-6] ^= 1  # of the checksum
    assert "decompress" in unpacked(driver, data)


# ---- a .cft that grows ------------------------

TEXTS = (b"action,id,size\nalloc,1,512\n", b"free,1\nalloc,2,64\n", b"free,2\n")


def growing(driver):
    """Three blocks of lines: the file, and where each ends."""
    data, ends = b"\x93cft\r\n\x1a\n" + struct.pack("<II", 4, 0), []
    for text in TEXTS:
        data += struct.pack("<BBHIIIQ", 15, 0, 0, text.count(b"\n"), len(text), 0, 0) + text
        ends.append(len(data))
    put(data)
    driver.ask("sign")
    return got(), ends


def test_growing_is_read_at_any_length(driver):
    """It may be read in the middle of a write: whole blocks count, from the first request on."""
    data, ends = growing(driver)
    for n in range(16, len(data) + 1):
        whole = sum(n >= end for end in ends)
        answer = unpacked(driver, data[:n], MEMORY)
        assert answer == b"".join(TEXTS[:whole]) if whole else "no request yet" in answer, (n, answer)


def test_growing_damage(driver):
    """Blocks that changed, moved or claim the impossible are an error that says where."""
    data, ends = growing(driver)
    for n in range(16, len(data)):
        answer = unpacked(driver, data[:n] + bytes([data[n] ^ 0x40]) + data[n + 1:], MEMORY)
        # a greater length is a block that is not whole
        assert (re.search("is damaged: block|no request yet", answer) if isinstance(answer, str)
                else len(answer) < sum(map(len, TEXTS))), (n, answer)
    at = ends[0] + 24
    assert unpacked(driver, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]).endswith(
        ": 'input' is damaged: block 1 at byte 67: checksum differs")


if __name__ == "__main__":
    trace_main(globals(), {})
