# SPDX-License-Identifier: Apache-2.0
"""What libcufrag_torch.so says of itself, as Python values: the structs of src/inject/live/live.h."""
import ctypes

I64, U64, U32 = ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32
KINDS = ("all", "small_pool", "large_pool")
# in the order of struct frag_live_stats
FAMILIES = ("allocation", "active", "segment", "inactive_split", "requested_bytes", "allocated_bytes",
            "active_bytes", "reserved_bytes", "inactive_split_bytes")
COUNTERS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
            "driver_calls", "driver_ns", "driver_failed", "stream_waits", "waiting_blocks", "contended",
            "limit_bytes", "total_bytes", "free_bytes", "largest_free_bytes")


class Stat(ctypes.Structure):
    """struct frag_live_stat"""
    _fields_ = [(name, I64) for name in ("current", "peak", "allocated", "freed")]


class Stats(ctypes.Structure):
    """struct frag_live_stats"""
    _fields_ = ([("size", U64)] + [(name, Stat * len(KINDS)) for name in FAMILIES]
                + [(name, I64) for name in COUNTERS] + [("fraction", ctypes.c_double)])


class Part(ctypes.Structure):
    """struct frag_live_part"""
    _fields_ = [("addr", U64), ("bytes", U64), ("requested", U64), ("stream", U64), ("pool_a", U64), ("pool_b", U64),
                ("kind", U32), ("state", U32), ("context", U64)]


class Event(ctypes.Structure):
    """struct frag_live_event"""
    _fields_ = [("addr", U64), ("bytes", U64), ("stream", U64), ("time_us", U64), ("action", U32), ("context", U32)]


class Call(ctypes.Structure):
    """struct frag_live_call"""
    _fields_ = [("name", ctypes.c_char_p), ("count", U64), ("failed", U64), ("bytes", U64), ("ns", U64)]


class Counter(ctypes.Structure):
    """struct frag_live_counter"""
    _fields_ = [("name", ctypes.c_char * 64), ("value", I64)]


def read(library, device):
    """struct frag_live_stats of a device; all zero where it was not used yet."""
    stats = Stats(size=ctypes.sizeof(Stats))
    library.frag_live_stats(int(device), ctypes.byref(stats))
    return stats


def calls(library, device):
    """{name: {count, failed, bytes, ns}} of the driver's calls."""
    return {row.name.decode(): {k: getattr(row, k) for k in ("count", "failed", "bytes", "ns")}
            for row in rows(library.frag_live_calls, Call, device)}


def counters(library, device):
    """The policy's own statistics."""
    return {row.name.decode(): row.value for row in rows(library.frag_live_counters, Counter, device)}


def rows(function, kind, device):
    function.restype = ctypes.c_size_t
    room = function(int(device), None, ctypes.c_size_t(0))
    while True:
        table = (kind * (room + 64))()
        count = function(int(device), table, ctypes.c_size_t(len(table)))
        if count <= len(table):
            return table[:count]
        room = count


def parts(library, device):
    """Rows of a snapshot: segments, each followed by its blocks."""
    return rows(library.frag_live_snapshot, Part, device)


def events(library, device):
    """The history, oldest first."""
    return rows(library.frag_live_history_read, Event, device)
