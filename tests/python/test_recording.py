# SPDX-License-Identifier: Apache-2.0
"""Recordings as arrays (cufrag.open): test_recording.py ROOT PROGRAM, with a Python that has NumPy.

Every figure is held against what the commands print. pandas, matplotlib and mypy are tested where
they are."""
import csv
import gc
import html.parser
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
os.environ["CUFRAG_PROGRAM"] = PROGRAM
sys.path.insert(0, os.path.join(ROOT, "src", "inject", "python"))
sys.dont_write_bytecode = True

import numpy  # noqa: E402

import cufrag  # noqa: E402


def trace(name):
    return os.path.join(ROOT, "traces", name + ".cft")


def run(*words):
    return subprocess.run([PROGRAM, *words, "--quiet"], capture_output=True, check=True, text=True).stdout


def mappings():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return maps.read().count("columns.npz")


def has(module):
    return importlib.util.find_spec(module) is not None


class Frames(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


class Arrays(unittest.TestCase):
    def test_columns_are_what_the_csv_says(self):
        for name, options in (("modelpar.default", {}), ("oomcap.default", {}), ("oomcap.default", {"policy": "vmm", "limit": "4G"})):
            rows = list(csv.DictReader(io.StringIO(run("export", "--to", "csv", trace(name), *("--%s=%s" % o for o in options.items())))))
            recording = cufrag.open(trace(name), **options)
            self.assertEqual(sorted({int(r["device"]) for r in rows}), [d.ordinal for d in recording.devices])
            for device in recording.devices:
                mine = [r for r in rows if int(r["device"]) == device.ordinal]
                for column in ("bytes", "stream", "pool", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes"):
                    self.assertEqual(device.events[column].tolist(), [int(r[column]) for r in mine], column)
                self.assertEqual([a if a != (1 << 64) - 1 else "" for a in device.events.address.tolist()],
                                 [int(r["address"], 16) if r["address"] else "" for r in mine])
                self.assertEqual([cufrag.Kind(k).name.lower() for k in device.events.kind], [r["action"] for r in mine])
                self.assertEqual([round(t / 1e6, 6) for t in device.events.time_us.tolist()], [float(r["time_s"]) for r in mine])
                self.assertTrue(numpy.shares_memory(device.series.reserved_bytes, device.events.reserved_bytes))
                self.assertEqual(device.peak_reserved_bytes, max(int(r["reserved_bytes"]) for r in mine))

    def test_numbers_are_those_of_the_headers(self):
        for header, name, kind in (("trace.h", "frag_event_kind", cufrag.Kind), ("policy.h", "frag_block_state", cufrag.State)):
            with open(os.path.join(ROOT, "src", "include", "frag", header), encoding="utf-8") as text:
                body = re.search(r"enum %s \{(.*?)\}" % name, text.read(), re.S).group(1)
            names = re.findall(r"\b[A-Z_]+\b", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
            self.assertEqual([re.sub("^FRAG_(EV|STATE)_", "", n) for n in names if not n.endswith("COUNT")], [k.name for k in kind])

    def test_nothing_is_copied_and_arrays_outlive_the_recording(self):
        gc.collect()
        before = mappings()
        recording = cufrag.open(trace("gnn.default"))
        for array in recording.events.values():
            self.assertFalse(array.flags.writeable)
            self.assertFalse(array.flags.owndata)
            self.assertEqual(array.ctypes.data % 64, 0)
        self.assertEqual(mappings(), before + 1)
        reserved = recording.events.reserved_bytes
        peak = int(reserved.max())
        del recording, array
        self.assertEqual((int(reserved.max()), mappings()), (peak, before + 1))
        del reserved  # the last one: gone at once, without a search for circles
        self.assertEqual(mappings(), before)

    def test_any_numpy_reads_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npz")
            run("export", "--to", "npz", "-o", path, trace("leak.frames"))
            with zipfile.ZipFile(path) as members:
                self.assertIsNone(members.testzip())
            recording = cufrag.open(trace("leak.frames"))
            with numpy.load(path) as arrays:
                self.assertEqual(arrays["device0.events.reserved_bytes"].tolist(), recording.events.reserved_bytes.tolist())
                self.assertEqual(sum(arrays[n].nbytes for n in arrays.files if ".events." in n) // recording.events.rows, 70)

    def test_moments_add_up(self):
        recording = cufrag.open(trace("modelpar.default"))
        for device in recording.devices:
            for event in (0, device.events.rows // 2, device.peak, device.events.rows - 1):
                moment = device.at(event=event)
                s, b = moment.segments, moment.blocks
                self.assertEqual(int(s.bytes.sum()), int(device.events.reserved_bytes[event]))
                self.assertEqual(int(b.bytes.sum()), int(s.bytes.sum()))
                self.assertEqual(int(b.bytes[b.state != cufrag.State.FREE].sum()), int(device.events.active_bytes[event]))
                for first, count, address in zip(s.first_block.tolist(), s.blocks_count.tolist(), s.address.tolist()):
                    self.assertEqual(b.address[first], address)
                    self.assertTrue((b.address[first + 1:first + count] == (b.address + b.bytes)[first:first + count - 1]).all())
                live = b.state == cufrag.State.LIVE
                self.assertEqual(device.events.address[b.event[live]].tolist(), b.address[live].tolist())
        self.assertEqual(recording.at().event, recording.main.peak)
        time_us = int(recording.events.time_us[100])
        self.assertGreaterEqual(recording.at(time_us=time_us).event, 100)
        for wrong in ({"event": recording.events.rows}, {"event": -1}):
            with self.assertRaises(IndexError):
                recording.at(**wrong)

    def test_stacks(self):
        recording = cufrag.open(trace("leak.frames"))
        number = int(recording.events.stack.max())
        self.assertEqual(recording.stack(0), [])
        self.assertRegex(recording.stack(number)[-1].file, r"\.py$")
        self.assertGreater(recording.stack(number)[-1].line, 0)
        with self.assertRaisesRegex(AttributeError, "there is no column 'byte'; there are time_us, "):
            recording.events.byte  # pylint: disable=pointless-statement

    def test_answers_are_those_of_the_commands(self):
        recording = cufrag.open(trace("oomcap.default"))
        self.assertEqual(recording.explain(at="oom:1"), json.loads(run("explain", "--at", "oom:1", "--json", "-", trace("oomcap.default"))))
        compared = recording.compare("pytorch", "vmm", no_host=True)
        self.assertEqual([r["policy"] for r in compared["results"]], ["pytorch", "vmm"])
        self.assertEqual(str(compared), "\n".join(compared["answers"]))
        self.assertIn("of fragmentation", str(recording.explain()))
        self.assertEqual(recording.diagnose()["command"], "diagnose")

    def test_what_is_wrong_is_said_with_its_offset(self):
        with open(trace("gnn.default"), "rb") as file:
            whole = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "-x <script>alert(1)<br>.cft")
            for length in (0, 1, 40, 500, len(whole) // 2, len(whole) - 1):
                with open(path, "wb") as file:
                    file.write(whole[:length])
                with self.assertRaises(cufrag.Error) as caught:
                    cufrag.open(path)
                self.assertEqual(caught.exception.status, 3, str(caught.exception))
                if length >= 40:
                    self.assertLessEqual(caught.exception.offset, length)
            for at in range(0, len(whole), len(whole) // 60):  # changed bytes: an error or a recording, never a crash
                with open(path, "wb") as file:
                    file.write(whole[:at] + bytes([whole[at] ^ 0x5a]) + whole[at + 1:])
                try:
                    cufrag.open(path)
                except cufrag.Error as error:
                    self.assertIn(error.status, (2, 3), str(error))
            with open(path, "wb") as file:
                file.write(whole)
            frames = Frames(cufrag.open(path)._repr_html_()).tags
            self.assertEqual([tag for tag, _ in frames if tag not in ("iframe", "pre")], [])
        for wrong, status in (({"policy": "budy"}, 2), ({"color_of": 3}, 2)):
            with self.assertRaises(cufrag.Error) as caught:
                cufrag.open(trace("gnn.default"), **wrong)
            self.assertEqual(caught.exception.status, status)
        with self.assertRaisesRegex(cufrag.Error, "No such file"):
            cufrag.open("nowhere.cft")

    def test_page_in_a_notebook(self):
        answer = cufrag.open(trace("seeddemo.default")).compare("pytorch", "vmm")
        (tag, attributes), *others = Frames(answer._repr_html_()).tags
        if tag == "pre":
            self.skipTest("no gnuplot: " + answer._repr_html_())
        self.assertEqual((tag, others, attributes["sandbox"]), ("iframe", [], "allow-scripts allow-downloads"))
        self.assertEqual(attributes["srcdoc"], answer.page)
        self.assertIn("<svg", answer.page)
        self.assertNotRegex(answer.page, r'(src|href)="https?://(?!www\.w3\.org)')

    def test_without_the_program_that_is_said(self):
        code = "import cufrag, sys; assert 'cufrag.recording' not in sys.modules\ntry: cufrag.open('x')\nexcept cufrag.Error as e: print(e)"
        said = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                              env={"PATH": "/nowhere", "PYTHONPATH": sys.path[0], "PYTHONDONTWRITEBYTECODE": "1"}).stdout
        self.assertIn("name it in CUFRAG_PROGRAM", said)

    def test_pandas(self):
        if not has("pandas"):
            self.skipTest("no pandas")
        recording = cufrag.open(trace("gnn.default"))
        table = recording.events.to_pandas()
        self.assertEqual(int(table.reserved_bytes.max()), int(recording.events.reserved_bytes.max()))
        self.assertTrue(numpy.shares_memory(table.reserved_bytes.to_numpy(), recording.events.reserved_bytes))
        self.assertEqual(list(recording.compare("pytorch", "vmm").to_pandas().policy), ["pytorch", "vmm"])

    def test_plot(self):
        if not has("matplotlib"):
            self.skipTest("no matplotlib")
        os.environ["MPLBACKEND"] = "agg"
        recording = cufrag.open(trace("gnn.default"))
        lines = recording.plot(points=100).get_lines()
        self.assertEqual([line.get_label() for line in lines], ["reserved", "allocated", "requested"])
        self.assertEqual(max(lines[0].get_ydata()), recording.events.reserved_bytes.max() / 2**30)

    def test_types(self):
        if not has("mypy"):
            self.skipTest("no mypy")
        use = "import cufrag\nr = cufrag.open('x')\nn: int = r.at(event=3).segments.rows\nk: cufrag.Kind = cufrag.Kind.ALLOC\nreveal_type(r.events.bytes)\n"
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "use.py"), "w", encoding="utf-8") as file:
                file.write(use)
            package = os.path.join(sys.path[0], "cufrag")
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--follow-imports=silent",
                                   "--cache-dir", folder, os.path.join(folder, "use.py"),
                                   *(os.path.join(package, n) for n in ("__init__.py", "recording.py", "program.py"))],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("ndarray", done.stdout)


if __name__ == "__main__":
    unittest.main()
