# SPDX-License-Identifier: Apache-2.0
"""Questions that PyTorch refuses under a pluggable allocator, answered from the library.

torch.cuda and torch.accelerator ask torch._C; the functions there are replaced, so that
memory_stats, memory_summary, memory_snapshot, the peaks and the observer of an out of memory work
as ever, in the shapes of the release. Calls from C++ (NCCL's snapshot of 2.15, the checkpoints of
cudagraph trees) do not come by here."""
import ctypes

from . import stats
from .history import History

STATES = {0: "active_allocated", 1: "active_pending_free", 2: "inactive"}
_observers: list = []
_keep: list = []  # what the library holds pointers into


def index_of(torch, device):
    """A device as torch names it: None, a number, "cuda:1", torch.device."""
    if device is None:
        return torch.cuda.current_device()
    if isinstance(device, int):
        return device
    number = torch.device(device).index
    return torch.cuda.current_device() if number is None else number


def nested(library, device, release=211):
    """torch._C._cuda_memoryStats: 119 statistics in 2.1, 122 up to 2.11, then 123."""
    s = stats.read(library, device)
    found = {"num_alloc_retries": s.num_alloc_retries, "num_ooms": s.num_ooms, "max_split_size": -1}
    if release >= 204:
        found.update({name: getattr(s, name) for name in ("num_sync_all_streams", "num_device_alloc", "num_device_free")})
    if release >= 212:
        found["num_oom_rejections"] = 0
    for family in stats.FAMILIES:
        rows = getattr(s, family)
        found[family] = {kind: {k: getattr(rows[i], k) for k, _ in stats.Stat._fields_}
                         for i, kind in enumerate(stats.KINDS)}
    # blocks above max_split_size: there is no such size
    for family in ("oversize_allocations", "oversize_segments"):
        found[family] = {k: 0 for k, _ in stats.Stat._fields_}
    return found


def segments(library, device, frames=lambda number: []):
    """The device's segments as torch.cuda.memory_snapshot has them, addresses ascending."""
    found = []
    for part in stats.parts(library, device):
        if part.kind == 0:
            found.append({"device": device, "address": part.addr, "total_size": part.bytes, "allocated_size": 0,
                          "active_size": 0, "requested_size": 0, "stream": part.stream,
                          "segment_type": "large", "segment_pool_id": (part.pool_a, part.pool_b),
                          "is_expandable": False, "frames": [], "blocks": []})
            continue
        segment, live = found[-1], part.state == 0
        segment["allocated_size"] += part.bytes if live else 0
        segment["active_size"] += part.bytes if part.state < 2 else 0
        segment["requested_size"] += part.requested
        segment["blocks"].append({"address": part.addr, "size": part.bytes, "requested_size": part.requested,
                                  "state": STATES[part.state], "frames": frames(part.context)})
    found.sort(key=lambda segment: segment["address"])
    return found


def snapshot(torch, library, history):
    """torch._C._cuda_memorySnapshot."""
    devices = range(torch.cuda.device_count())
    return {"segments": [s for d in devices for s in segments(library, d, history.frames)],
            "device_traces": [history.trace(d) for d in devices],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "backend": "cufrag:" + library.frag_live_policy().decode()},
            "external_annotations": []}


def in_pool(found, pool):
    """Segments of one private pool, where the caller names one."""
    if pool is None or tuple(pool[:2]) == (0, 0):
        return found
    return dict(found, segments=[s for s in found["segments"] if s["segment_pool_id"] == tuple(pool[:2])])


def observe(library):
    """The observers of torch._C._cuda_attach_out_of_memory_observer are called before the exception."""
    def call(device, requested, total, free):
        for observer in list(_observers):
            observer(device, requested, total, free)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    _keep.append(kind(call))
    library.frag_live_on_oom(_keep[-1])


def table(torch, library, release):
    """Every function of torch._C that is replaced."""
    library.frag_live_policy.restype = ctypes.c_char_p
    history = History(library)

    def numbers(device=None):
        return nested(library, index_of(torch, device), release)

    def fraction(device=None):
        return stats.read(library, index_of(torch, device)).fraction

    def reset_peak(device=None):
        library.frag_live_reset_peak(index_of(torch, device))

    def reset_accumulated(device=None):
        library.frag_live_reset_accumulated(index_of(torch, device))

    return {
        "_cuda_memoryStats": numbers, "_cuda_resetPeakMemoryStats": reset_peak,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated, "_cuda_getMemoryFraction": fraction,
        "_cuda_memorySnapshot": lambda pool=None, *_: in_pool(snapshot(torch, library, history), pool),
        "_cuda_record_memory_history": history.record, "_cuda_record_memory_history_legacy": history.record_legacy,
        "_cuda_isHistoryEnabled": lambda *_: bool(history.enabled),
        "_cuda_attach_out_of_memory_observer": _observers.append,
        "_accelerator_getDeviceStats": numbers, "_accelerator_resetPeakStats": reset_peak,
        "_accelerator_resetAccumulatedStats": reset_accumulated,
        "_accelerator_isAllocatorInitialized": lambda *_: torch.cuda.is_initialized(),
        "_accelerator_emptyCache": lambda *_: torch.cuda.empty_cache(),
    }


def put_in(torch, library, release):
    """Replaces what this release has of the table."""
    for name, function in table(torch, library, release).items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)
    observe(library)
