# SPDX-License-Identifier: Apache-2.0
"""The Python package without PyTorch and without a card: what it makes of what the library says.

python3 test_package.py ROOT; the library is a stand-in written here, the structs are held against
live.h."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else ".")
sys.path.insert(0, os.path.join(ROOT, "src", "inject", "python"))
sys.dont_write_bytecode = True

from cufrag import answers, stats  # noqa: E402
from cufrag import torch as live  # noqa: E402
from cufrag.history import History  # noqa: E402


class Entry:
    """A function of the library; ctypes' attributes can be set on it."""
    restype = argtypes = None

    def __init__(self, run):
        self.run = run

    def __call__(self, *what):
        return self.run(*what)


def fill(table, room, kind, rows):
    for i, row in enumerate(rows[:room.value]):
        table[i] = kind(*row)
    return len(rows)


class Library:
    """Answers as libcufrag_torch.so does."""

    def __init__(self):
        self.reset, self.observer, self.histories, self.contexts, self.asked = [], None, [], [], 0
        parts = [(0x1000, 4096, 0, 7, 0, 0, 0, 0), (0x1000, 1024, 1000, 7, 0, 0, 1, 0), (0x1400, 1024, 0, 7, 0, 0, 1, 1),
                 (0x1800, 2048, 0, 0, 0, 0, 1, 2), (0x0800, 512, 0, 0, 3, 4, 0, 0), (0x0800, 512, 0, 0, 0, 0, 1, 2)]
        self.frag_live_policy = Entry(lambda: b"vmm")
        self.frag_live_snapshot = Entry(lambda device, table, room: fill(table, room, stats.Part, parts))
        self.frag_live_history = Entry(lambda *what: self.histories.append(what))
        self.frag_live_on_context = Entry(lambda *what: self.contexts.append(what))
        self.frag_live_calls = Entry(lambda device, table, room: fill(
            table, room, stats.Call, [(b"cudaMalloc", 1, 0, 0, 0), (b"cuMemMap", 5, 0, 0, 0)]))
        self.frag_live_counters = Entry(lambda device, table, room: fill(table, room, stats.Counter, [(b"moved_handles", 11)]))
        self.frag_live_history_read = Entry(lambda device, table, room: fill(
            table, room, stats.Event, [(0x100, 64, 7, 99, 0, self.asked), (9, 1 << 40, 0, 100, 3, 0)]))

    def frag_live_stats(self, device, pointer):
        s = pointer._obj
        assert s.size == ctypes.sizeof(stats.Stats)
        s.reserved_bytes[0].peak = 100 + device
        s.num_ooms, s.fraction = 3, 0.5
        return 0

    def frag_live_reset_peak(self, device):
        self.reset.append(device)

    def frag_live_on_oom(self, function):
        self.observer = function


def fake_torch(*names):
    """Of torch what is asked for; the names are in torch._C."""
    cuda = types.SimpleNamespace(current_device=lambda: 1, device_count=lambda: 1, is_initialized=lambda: True)
    return types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(**{n: None for n in names}),
                                 device=lambda text: types.SimpleNamespace(
                                     index=int(text.split(":")[1]) if ":" in text else None))


class Package(unittest.TestCase):
    def test_version(self):
        with open(os.path.join(ROOT, "Makefile")) as text:
            self.assertIn("\nRELEASE := %s\n" % sys.modules["cufrag"].__version__, text.read())

    def test_statistics_have_the_shape_of_the_release(self):
        def count(value):
            return sum(count(v) for v in value.values()) if isinstance(value, dict) else 1
        for release, wanted in ((201, 119), (204, 122), (211, 122), (212, 123), (215, 123)):
            self.assertEqual(count(answers.nested(Library(), 0, release)), wanted, release)
        found = answers.nested(Library(), 2)
        self.assertEqual(found["reserved_bytes"]["all"], {"current": 0, "peak": 102, "allocated": 0, "freed": 0})
        self.assertEqual(found["num_ooms"], 3)

    def test_segments_are_in_order_and_add_up(self):
        found = answers.segments(Library(), 0)
        self.assertEqual([s["address"] for s in found], [0x800, 0x1000])
        self.assertEqual(found[0]["segment_pool_id"], (3, 4))
        self.assertEqual((found[1]["allocated_size"], found[1]["active_size"], found[1]["requested_size"]), (1024, 2048, 1000))
        self.assertEqual([b["state"] for b in found[1]["blocks"]],
                         ["active_allocated", "active_pending_free", "inactive"])

    def test_what_torch_has_is_replaced_and_nothing_else(self):
        library = Library()
        torch = fake_torch("_cuda_memoryStats", "_cuda_resetPeakMemoryStats", "_cuda_memorySnapshot",
                           "_cuda_attach_out_of_memory_observer")
        answers.put_in(torch, library, 211)
        self.assertEqual(sorted(vars(torch._C)), ["_cuda_attach_out_of_memory_observer", "_cuda_memorySnapshot",
                                                  "_cuda_memoryStats", "_cuda_resetPeakMemoryStats"])
        self.assertEqual(torch._C._cuda_memoryStats(0)["reserved_bytes"]["all"]["peak"], 100)
        torch._C._cuda_resetPeakMemoryStats(None)
        torch._C._cuda_resetPeakMemoryStats("cuda:3")
        self.assertEqual(library.reset, [1, 3])
        self.assertEqual(len(torch._C._cuda_memorySnapshot(None)["segments"]), 2)
        self.assertEqual(len(torch._C._cuda_memorySnapshot((3, 4, True))["segments"]), 1)
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
        library.observer(0, 10, 20, 5)
        self.assertEqual(seen, [(0, 10, 20, 5)])

    def test_history(self):
        library = Library()
        history = History(library)

        def ask():
            return library.contexts[-1][0]()
        history.record("all", "all", "python", 50, True, False, False, ["oom", "segment_free"])
        self.assertEqual(library.histories, [(50, 0b010111, True)])
        library.asked = ask()
        self.assertEqual(history.frames(library.asked)[0]["name"], "ask")
        numbers = {ask() for _ in range(3)}
        self.assertEqual(len(numbers), 1)  # equal stacks, one number
        self.assertEqual([(e["action"], e.get("addr"), e.get("device_free")) for e in history.trace(0)],
                         [("alloc", 0x100, None), ("oom", None, 9)])
        self.assertEqual(history.trace(0)[0]["frames"][1]["name"], "test_history")
        history.record("state", "state")
        self.assertEqual(library.histories[-1], (0, 0b111111, False))
        self.assertFalse(library.contexts[-1][1])  # frees are not asked
        self.assertEqual(history.trace(0)[0]["frames"], [])
        history.record_legacy(True, True, 7, True)
        self.assertEqual(library.histories[-1], (7, 0b111111, False))
        history.record(None)
        self.assertEqual((library.histories[-1][1], bool(library.contexts[-1][0]), history.enabled), (0, False, None))
        for wrong in (("some",), ("all", "frees"), ("all", "all", "c")):
            with self.assertRaisesRegex(RuntimeError, "does not know"):
                history.record(*wrong)

    def test_calls_and_counters(self):
        self.assertEqual({k: v["count"] for k, v in stats.calls(Library(), 0).items()}, {"cudaMalloc": 1, "cuMemMap": 5})
        self.assertEqual(stats.counters(Library(), 0), {"moved_handles": 11})

    def test_releases(self):
        self.assertEqual([live.release_of(v) for v in ("2.11.0+cu130", "2.1.2", "3.0", "odd")], [211, 201, 300, 0])

    def test_without_a_policy_that_is_said(self):
        self.assertIsNone(live.policy())
        with self.assertRaisesRegex(RuntimeError, "use first"):
            live.memory_stats()

    def test_structs_are_those_of_the_header(self):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "sizes.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include "inject/live/live.h"\n#include <stdio.h>\n#define SAY(s, m) printf("%zu ", offsetof(struct s, m))\n'
                           'int main(void) { printf("%zu %zu %zu %zu %zu ", sizeof(struct frag_live_event), sizeof(struct frag_live_stats), sizeof(struct '
                           'frag_live_part), sizeof(struct frag_live_call), sizeof(struct frag_live_options));\n'
                           + "".join("SAY(frag_live_stats, %s);" % name for name, *_ in stats.Stats._fields_)
                           + "SAY(frag_live_part, pool); SAY(frag_live_part, state); SAY(frag_live_part, context); SAY(frag_live_event, context); SAY(frag_live_options, flags);}\n")
            program = os.path.join(folder, "sizes")
            subprocess.run([compiler, "-I", os.path.join(ROOT, "src"), "-o", program, source], check=True)
            said = [int(v) for v in subprocess.run([program], capture_output=True, text=True, check=False).stdout.split()]
        here = [ctypes.sizeof(t) for t in (stats.Event, stats.Stats, stats.Part, stats.Call, live.Options)]
        here += [getattr(stats.Stats, name).offset for name, *_ in stats.Stats._fields_]
        here += [stats.Part.pool_a.offset, stats.Part.state.offset, stats.Part.context.offset, stats.Event.context.offset, live.Options.flags.offset]
        self.assertEqual(said, here)


if __name__ == "__main__":
    unittest.main()
