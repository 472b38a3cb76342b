# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.memory._record_memory_history under a policy: the library keeps what happened, this the stacks of Python.

The library asks for a stack at each request and free, without a lock, and keeps the number it gets;
equal stacks have one number, so a training that repeats its steps keeps few. Frames of C++ are not
among them."""
import atexit
import ctypes
import itertools
import sys

from . import stats

# in the order of enum frag_live_did
ACTIONS = ("alloc", "free_requested", "free_completed", "oom", "segment_alloc", "segment_free")
MOST = (1 << 63) - 1
CONTEXTS = (None, "state", "alloc", "all")


class History:
    """What torch._C knows of it."""

    def __init__(self, library):
        self.library, self.enabled, self.context = library, None, None
        self.counter = itertools.count(1)
        self.numbers, self.stacks = {}, {}
        self.kind = ctypes.CFUNCTYPE(ctypes.c_uint32)
        self.here_of_c, self.nobody = self.kind(self.here), ctypes.cast(None, self.kind)
        self.library.frag_live_history.argtypes = [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int]
        atexit.register(self.ask_for, None)

    def here(self):
        """The number of the stack that asks. In a thread without Python it is empty."""
        frame, stack = sys._getframe(1), []  # pylint: disable=protected-access
        while frame is not None:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        stack = tuple(stack)
        number = self.numbers.get(stack)
        if number is None:
            number = next(self.counter)
            self.stacks[number] = stack
            self.numbers[stack] = number
        return number

    def ask_for(self, context):
        """Stacks of requests, and of frees, from now on."""
        self.context = context
        self.library.frag_live_on_context(self.here_of_c if context else self.nobody,
                                          self.here_of_c if context == "all" else self.nobody)

    def record(self, enabled="all", context="all", stacks="all", max_entries=MOST, clear_history=False, *rest):
        """torch._C._cuda_record_memory_history; `rest` of newer releases: annotations, and the actions to skip."""
        if enabled not in (None, "state", "all") or context not in CONTEXTS or stacks not in ("python", "all"):
            raise RuntimeError("cufrag: _record_memory_history does not know enabled=%r, context=%r, stacks=%r" % (enabled, context, stacks))
        skipped = [a for part in rest if isinstance(part, (list, tuple)) for a in part]
        wanted = sum(1 << i for i, action in enumerate(ACTIONS) if action not in skipped)
        self.enabled = enabled
        self.ask_for(context if enabled else None)
        if clear_history:
            self.numbers, self.stacks = {}, {}
        self.library.frag_live_history(min(int(max_entries), MOST) if enabled == "all" else 0, wanted if enabled else 0, bool(clear_history))

    def record_legacy(self, enabled, record_context=True, max_entries=1, record_trace_context=False, _cpp=False, clear_history=False, *_):
        """torch._C._cuda_record_memory_history_legacy, the call with a bool."""
        context = ("all" if record_trace_context else "state") if record_context else None
        self.record("all" if enabled else None, context, "python", max_entries, clear_history)

    def frames(self, number):
        """A stack as PyTorch has it, the innermost frame first."""
        return [{"filename": code.co_filename, "line": line or 0, "name": code.co_name} for code, line in self.stacks.get(number, ())]

    def trace(self, device):
        """device_traces of a snapshot."""
        with_frames, found = self.context in ("alloc", "all"), []
        for event in stats.events(self.library, device):
            entry = {"action": ACTIONS[event.action], "size": event.bytes, "stream": event.stream, "time_us": event.time_us,
                     "compile_context": "N/A", "user_metadata": "", "frames": self.frames(event.context) if with_frames else []}
            entry["device_free" if entry["action"] == "oom" else "addr"] = event.addr
            found.append(entry)
        return found
