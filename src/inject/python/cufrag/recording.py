# SPDX-License-Identifier: Apache-2.0
"""A recording in Python: events, series and segments as NumPy arrays, and what cufrag's commands say of it.

The program does the work, in a process of its own: a damaged file cannot end the notebook, and
Ctrl-C ends the work. It writes an .npz (docs/understand.md), which is mapped and used where it
lies: nothing is copied, and the arrays share its memory. The file has no name any more; it goes
with the last array.
"""
from __future__ import annotations

import enum
import functools
import html
import json
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import program

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

Option = Union[str, int, float, bool, None]
DONE = (0, 1, 6)  # exit statuses of a command that has an answer: docs/install.md
UNKNOWN = (1 << 64) - 1  # an address or event that is not known
SERIES = ("time_us", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes")


class Kind(enum.IntEnum):
    """events.kind: enum frag_event_kind"""

    ALLOC = 0
    FREE = 1
    FREE_REQUESTED = 2
    FREE_COMPLETED = 3
    TRIM = 4
    REFUSED = 5
    MARK = 6


class State(enum.IntEnum):
    """blocks.state: enum frag_block_state"""

    LIVE = 0
    WAITING = 1
    FREE = 2


class Error(RuntimeError):
    """What a command of cufrag could not do. offset: of the byte in the file that is wrong, where there is one."""

    def __init__(self, message: str, status: int = 3):
        super().__init__(message)
        found = re.search(r"\bbyte (\d+)", message)
        self.status = status
        self.offset: Optional[int] = int(found.group(1)) if found and status == 3 else None


class Frame(NamedTuple):
    """Of a stack."""

    name: str
    file: str
    line: int


class Columns(Mapping[str, "Array"]):
    """Arrays of one length by name, as columns["bytes"] or columns.bytes. They are read-only views of one mapped file."""

    def __init__(self, arrays: Mapping[str, Array]):
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError("there is no column %r; there are %s" % (name, ", ".join(self.__dict__.get("_arrays", ()))))
        return self._arrays[name]

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._arrays]

    def __repr__(self) -> str:
        return "<%d rows: %s>" % (self.rows, ", ".join(self._arrays))

    @property
    def rows(self) -> int:
        """Length of each column."""
        return len(next(iter(self._arrays.values()), ()))

    def to_pandas(self) -> Any:
        """A DataFrame of the same memory."""
        import pandas  # pylint: disable=import-outside-toplevel

        return pandas.DataFrame(self._arrays, copy=False)


# ---- the program


def _program() -> str:
    """CUFRAG_PROGRAM, the wheel's, or that of PATH."""
    mine = program.path()
    found = os.environ.get("CUFRAG_PROGRAM") or (mine if os.path.isfile(mine) else shutil.which("cufrag"))
    if not found:
        raise Error("the program 'cufrag' is not there; put it on PATH, or name it in CUFRAG_PROGRAM", 2)
    return found


def _run(arguments: Sequence[str]) -> str:
    """What a command prints. Errors: Error, with what it said."""
    done = subprocess.run([_program(), *arguments, "--quiet"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in DONE:
        said = re.sub(r"^cufrag( \w+)?: ", "", done.stderr.decode("utf-8", "replace").strip())
        raise Error(said or "cufrag %s ended with status %d" % (arguments[0], done.returncode), done.returncode)
    return done.stdout.decode("utf-8", "replace")


def _words(options: Mapping[str, Option]) -> List[str]:
    """limit="8G" as --limit=8G; True: a flag."""
    return ["--" + name.replace("_", "-") + ("" if value is True else "=%s" % value)
            for name, value in options.items() if value is not None and value is not False]


def _map(path: str) -> Dict[str, Array]:
    """The arrays of an .npz that cufrag wrote, where they lie. Each holds the mapping."""
    import numpy  # pylint: disable=import-outside-toplevel

    arrays: Dict[str, Array] = {}
    with open(path, "rb") as file, zipfile.ZipFile(file) as members:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for member in members.infolist():
            file.seek(member.header_offset + 26)
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
            file.seek(name + extra, os.SEEK_CUR)
            numpy.lib.format.read_magic(file)
            shape, _, kind = numpy.lib.format.read_array_header_1_0(file)
            arrays[member.filename[:-4]] = (numpy.frombuffer(mapped, kind, shape[0], file.tell()) if shape[0] else numpy.empty(0, kind))
    return arrays


def _table(arrays: Mapping[str, Array], prefix: str) -> Columns:
    return Columns({name[len(prefix):]: array for name, array in arrays.items() if name.startswith(prefix)})


# ---- pages


def _page(arguments: Sequence[str]) -> str:
    """One page with everything inside, of a command that has an answer. All pages in notebooks come from here."""
    with tempfile.TemporaryDirectory(prefix="cufrag-") as folder:
        _run([*arguments, "--out", folder, "--formats", "svg"])
        with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
            page = file.read()
    # the files beside the report are gone, so their links are, too
    return page.replace("</head>", "<style>.files{display:none}</style></head>", 1)


def _frame(page: str, height: int = 720) -> str:
    """In a frame of its own: it sees nothing of the notebook, and its style stays inside."""
    return ('<iframe sandbox="allow-scripts allow-downloads" style="width:100%%;height:%dpx;border:0" srcdoc="%s"></iframe>'
            % (height, html.escape(page, quote=True)))


class Answer(Dict[str, Any]):
    """What a command answers: its JSON as a dict, its conclusions as text, its page in a notebook."""

    def __init__(self, arguments: Sequence[str]):
        super().__init__(json.loads(_run([*arguments, "--json=-"])))
        self._arguments = tuple(arguments)

    def __str__(self) -> str:
        return "\n".join(self.get("answers", ()))

    def __repr__(self) -> str:
        return "<cufrag %s: %s>" % (self._arguments[0], self)

    def to_pandas(self, table: Optional[str] = None) -> Any:
        """A table as a DataFrame; without a name, that of the results or of the call sites."""
        import pandas  # pylint: disable=import-outside-toplevel

        return pandas.DataFrame(self[table or ("results" if "results" in self else "sites")])

    @functools.cached_property
    def page(self) -> str:
        """The report as one HTML file. Errors: Error, without gnuplot."""
        return _page(self._arguments)

    def _repr_html_(self) -> str:
        try:
            return _frame(self.page)
        except Error as error:
            return "<pre>%s</pre>" % html.escape("%s\n\n(no page: %s)" % (self, error))


# ---- recordings


class Moment:
    """Segments and blocks of a device after one event."""

    def __init__(self, event: int, segments: Columns, blocks: Columns):
        self.event, self.segments, self.blocks = event, segments, blocks

    def __repr__(self) -> str:
        return "<after event %d: %d segments, %d blocks>" % (self.event, self.segments.rows, self.blocks.rows)


class _Source(NamedTuple):
    """What a recording's arrays come from. Devices hold this, not the recording: without a circle they go at once."""

    path: str
    words: Sequence[str]

    def exported(self, after: Optional[int] = None) -> Dict[str, Array]:
        """The arrays of `cufrag export --to npz`, by their names there."""
        with tempfile.TemporaryDirectory(prefix="cufrag-") as folder:
            target = os.path.join(folder, "columns.npz")
            _run(["export", "--to", "npz", "--output", target, *self.words, *_words({"after": after}), self.path])
            return _map(target)


class Device:
    """One device of a recording: a row per event in `events`; `series` are the bytes after each."""

    def __init__(self, source: _Source, ordinal: int, events: Columns, recorded_peak_bytes: int = 0):
        self._source, self.ordinal, self.events = source, ordinal, events
        self._recorded_peak_bytes = recorded_peak_bytes
        self.series = Columns({name: events[name] for name in SERIES})

    def __repr__(self) -> str:
        return "<device %d: %d events>" % (self.ordinal, self.events.rows)

    @property
    def peak_reserved_bytes(self) -> int:
        """Most that was reserved when it was recorded, as in all commands; of a policy, or if the file lacks it, in the replay."""
        return self._recorded_peak_bytes or int(self.events.reserved_bytes.max(initial=0))

    @property
    def peak(self) -> int:
        """The first event with the most live, as granted."""
        return int(self.events.allocated_bytes.argmax())

    @property
    def peak_reserved(self) -> int:
        """The first event with the most reserved."""
        return int(self.events.reserved_bytes.argmax())

    def at(self, event: Optional[int] = None, time_us: Optional[int] = None) -> Moment:
        """After an event, or the last event up to a time; without either, at the peak of live memory."""
        import numpy  # pylint: disable=import-outside-toplevel

        if event is None:
            event = self.peak if time_us is None else int(numpy.searchsorted(self.events.time_us, time_us, "right")) - 1
        if not 0 <= event < self.events.rows:
            raise IndexError("there is no event %d: there are %d" % (event, self.events.rows))
        arrays = self._source.exported(after=event)
        prefix = "device%d." % self.ordinal
        return Moment(event, _table(arrays, prefix + "segments."), _table(arrays, prefix + "blocks."))

    def plot(self, axes: Any = None, points: int = 4000) -> Any:
        """Reserved, allocated and requested memory over time, in GiB, by matplotlib: the most of each part of the run."""
        import numpy  # pylint: disable=import-outside-toplevel
        from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

        axes = axes if axes is not None else pyplot.subplots()[1]
        starts = numpy.unique(numpy.linspace(0, self.events.rows - 1, min(points, self.events.rows)).astype("i8"))
        for name in ("reserved_bytes", "allocated_bytes", "requested_bytes"):
            axes.step(self.events.time_us[starts] / 1e6, numpy.maximum.reduceat(self.events[name], starts) / 2**30,
                      where="post", label=name[:-6])
        axes.set(xlabel="time (s)", ylabel="GiB", title=os.path.basename(self._source.path))
        axes.legend()
        return axes


class Recording:
    """A recording that was opened: cufrag.open. `events`, `series`, `at` and `plot` are of the device that reserved most."""

    def __init__(self, path: str, policy: Optional[str], options: Mapping[str, Option]):
        self.path = path
        self._options = _words(options)
        self._policy = _words({"policy": policy})
        source = _Source(path, [*self._options, *self._policy])
        arrays = source.exported()
        found = sorted({int(m.group(1)) for m in (re.match(r"device(\d+)\.", name) for name in arrays) if m})
        self.devices: List[Device] = [Device(source, n, _table(arrays, "device%d.events." % n), int(arrays["device%d.recorded.peak_bytes" % n][0]))
                                      for n in found]
        self.main = max(self.devices, key=lambda d: int(d.events.reserved_bytes.max(initial=0)))
        self.start_us = int(arrays["start_us"][0])
        self._texts, self._stacks, self._frames = (_table(arrays, kind + ".") for kind in ("texts", "stacks", "frames"))

    def __repr__(self) -> str:
        return "<recording %r: %s>" % (self.path, ", ".join("%d events on device %d" % (d.events.rows, d.ordinal) for d in self.devices))

    @property
    def events(self) -> Columns:
        """A row for each event."""
        return self.main.events

    @property
    def series(self) -> Columns:
        """Time and bytes after each event."""
        return self.main.series

    def at(self, event: Optional[int] = None, time_us: Optional[int] = None) -> Moment:
        """Segments and blocks at a moment: see Device.at."""
        return self.main.at(event, time_us)

    def plot(self, axes: Any = None, points: int = 4000) -> Any:
        """Memory over time: see Device.plot."""
        return self.main.plot(axes, points)

    def text(self, number: int) -> str:
        """A text by its number: names and files of frames, and the slot of a mark, which is its name."""
        first = self._texts.first
        return bytes(self._texts.bytes[int(first[number]):int(first[number + 1])]).decode("utf-8", "replace")

    def stack(self, number: int) -> List[Frame]:
        """A stack by its number, the innermost frame first; 0 is empty."""
        first, frames = self._stacks.first, self._stacks.frames
        return [Frame(self.text(int(self._frames.name[f])), self.text(int(self._frames.file[f])), int(self._frames.line[f]))
                for f in frames[int(first[number]):int(first[number + 1])]]

    def _asked(self, command: str, options: Mapping[str, Option], words: Sequence[str]) -> Answer:
        return Answer([command, *self._options, *_words(options), *words, self.path])

    def compare(self, *policies: str, **options: Option) -> Answer:
        """What each policy would have reserved: `cufrag compare`. Without policies: those of the command."""
        return self._asked("compare", options, [word for p in policies for word in _words({"policy": p})])

    def explain(self, **options: Option) -> Answer:
        """Who holds the memory at a moment (at="peak", "reserved", "oom", "event:1000", "time:1.5s"): `cufrag explain`."""
        return self._asked("explain", options, self._policy)

    def diagnose(self, **options: Option) -> Answer:
        """Is the run healthy: `cufrag diagnose`."""
        return self._asked("diagnose", options, [])

    def _repr_html_(self) -> str:
        policy = self._policy or _words({"policy": "recorded"})
        return self._asked("compare", {}, policy)._repr_html_()  # pylint: disable=protected-access


def open_recording(path: Union[str, os.PathLike[str]], policy: Optional[str] = None, **options: Option) -> Recording:
    """Opens a recording of any format that cufrag reads (cufrag list formats).

    Addresses and bytes are those of a replay: of the recorded settings, or of `policy`. Further
    options are those of the command line: limit="8G", gpu="h100", torch="2.13". Errors: Error.
    """
    return Recording(os.path.abspath(os.fspath(path)), policy, options)
