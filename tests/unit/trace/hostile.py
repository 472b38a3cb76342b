#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are sound byte by byte and hostile as a whole, in TAP: hostile.py BUILD/tests/drivers

The program answers or says where the file is wrong; it never ends by a signal."""
import os
import random
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support"), os.path.join(HERE, "../../fuzz")]
from driven import Driver, got, program, put, said, trace_main  # noqa: E402
from grammar import (MOST, block, device, events, file, head, numbers, random_file,  # noqa: E402
                     table)

ALLOC, FREE, COMPLETED = 0, 1, 3
COMMANDS = ["info", "verify", "explain", "diagnose", "advise", "replay --policy pytorch", "summary",
            "replay --policy vmm --on-oom=skip", "view --json -", "tune", "plan --csv -",
            "export --to memory_viz -o viz", "export --to npz -o npz", "import -o again.cft",
            "fit --policy recorded", "explain --limit 100M"]


def run(command, **variables):
    """(status, its last words)"""
    first, *rest = command.split()
    ran = subprocess.run([program(), first, "input", *rest], cwd=Driver.folder, check=False,
                         capture_output=True, timeout=120, env={**os.environ, **variables})
    return ran.returncode, ran.stderr.decode(errors="replace")


def signed(driver, data):
    put(data)
    driver.ask("sign")


def survives(driver, data, commands=None):
    signed(driver, data)
    for command in commands or COMMANDS:
        status, words = run(command)
        assert 0 <= status < 100 and "bug at" not in words, (command, status, words)
        assert status in (0, 1, 6) or words, command


def alloc_free(**more):
    """One block, in a file whose only device is otherwise as the arguments say."""
    rows = [(ALLOC, 0, 0, 512, 0, 0, 0, 0), (FREE, 0, 0, 512, 0, 0, 1, 0)]
    return file(1, 2, head(), device(0, 2, 1, **more), events(0, rows))


def test_flags_that_imply_nothing(driver):
    signed(driver, alloc_free(evidence=1))
    assert said(driver, "read").endswith("device 0: evidence without addresses")
    signed(driver, alloc_free(ordinal=2**32 - 1))
    assert said(driver, "read").endswith("device number out of range")
    survives(driver, alloc_free(ordinal=65535), ["info", "export --to memory_viz -o viz"])


def test_an_empty_name_is_none(driver):
    rows = [(ALLOC, 0, 0, 1 << 20, 0, 0, 0, 0), (FREE, 0, 0, 1 << 20, 0, 0, 1, 0)]
    note = "card h100\ntorch 2.11\nstatus 0\n"
    survives(driver, file(3, 2, head(3, name="", note=note), device(0, 2, 1), events(0, rows)))


def test_blocks_that_wait_at_first(driver):
    """However such a block is freed, its slot is free again."""
    at, mib = 0x7F0000000000, 1 << 20
    for kinds in ([COMPLETED], [FREE], [2, COMPLETED]):
        rows = [(ALLOC, 1, 0, mib, 0, 0, 0, 0)]
        rows += [(kind, 0, 0, mib, 0, 0, 1, 0) for kind in kinds]
        rows += [(kind, 0, 0, mib, 0, 0, 2 + i, 0) for i, kind in enumerate([ALLOC, FREE] * 2)]
        survives(driver, file(
            2, len(rows), head(2, settings=(1, MOST, 0, 0, MOST, 0)),
            device(0, len(rows), 1, addresses=1, evidence=1, initial=(1, 1)),
            table(7, 0, [(at, 2 * mib, 0, 0, 0, 0, 0, 1, at)]),
            table(8, 0, [(at, mib, mib, 0, 0, 1)]), events(0, rows, [at] * 3)))


def test_settling_restores_arrays_with_their_counts(driver):
    """A limit makes settling try again, with fewer pools: no byte of the heap gets into the file."""
    traces = os.path.join(HERE, "../../../traces/mempool.default.cft")
    with open(traces, "rb") as f:
        data = f.read()
    length = struct.unpack_from("<I", data, 16 + 8)[0]
    first = head(stacks=1, settings=(1, MOST, 0, 0, 100 << 20, 1), name="m")
    signed(driver, data[:16] + first + data[16 + 24 + length:])
    images = set()
    for fill in ("85", "170"):
        status, words = run("import -o again.cft", MALLOC_PERTURB_=fill)
        assert status == 0, words
        images.add(got("again.cft"))
    assert len(images) == 1


def test_bombs(driver):
    """What a small file unpacks to is limited, and --unpack-max raises that."""
    many = 65536
    frames = block(3, 0, many, *[numbers([0] * many)] * 3)
    pools = device(0, 0, 0, pools=[(0, 0)] * many)
    for data in (file(1, 0, head(frames=600 * many), [frames] * 600, device(0, 0, 0)),
                 file(1, 0, head(devices=400), [pools[:2] + struct.pack("<H", d) + pools[4:]
                                                for d in range(400)])):
        signed(driver, data)
        assert len(data) < 100000 and "decompression limit" in said(driver, "read")
        status, words = run("explain")
        assert status == 3 and "--unpack-max" in words, (status, words)
    signed(driver, file(1, 0, head(frames=many), frames, device(0, 0, 0)))
    assert "decompression limit" not in said(driver, "read")


def test_grammar(driver):
    """Files of all versions that a reader takes for sound, at random."""
    count = 400 if os.environ.get("FRAG_TEST_NIGHTLY") else 24
    rng = random.Random(os.environ.get("FRAG_TEST_SEED", 1))
    for i in range(count):
        data = random_file(random.Random(seed := rng.randrange(2**32)))
        try:
            survives(driver, data, [COMMANDS[0], *rng.sample(COMMANDS, 3)])
        except AssertionError as wrong:
            raise AssertionError(f"file {i}, seed {seed}: {wrong}") from wrong


if __name__ == "__main__":
    trace_main(globals(), {})
