# SPDX-License-Identifier: Apache-2.0
"""What torch.cuda is asked under a policy of cufrag: prints "answered" when all is as it should be."""
import inspect
import sys

import torch

import cufrag

held = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
torch.empty(1000, device="cuda")
stats = torch.cuda.memory_stats()
assert len(stats) in (119, 122, 123), len(stats)
assert torch.cuda.memory_allocated() == 3 << 20 < torch.cuda.max_memory_allocated() <= torch.cuda.memory_reserved()
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 3 << 20
assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary() == cufrag.torch.memory_summary()
segments = torch.cuda.memory_snapshot()
assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
assert sum(b["size"] for s in segments for b in s["blocks"]) == torch.cuda.memory_reserved()
assert any(b["address"] == held.data_ptr() and b["state"] == "active_allocated" for s in segments for b in s["blocks"])
torch.cuda.memory._dump_snapshot("snapshot.pickle")
seen = []
torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
try:
    torch.empty(1 << 46, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    assert "cufrag" in str(error), error
assert seen and seen[0][1] == 1 << 46, seen
assert cufrag.torch.memory_stats()["num_ooms"] == 1
assert cufrag.torch.policy() == sys.argv[1] and cufrag.torch.driver_calls()["cuMemMap"]["count"] and cufrag.torch.counters()
if hasattr(torch, "accelerator") and hasattr(torch.accelerator, "memory_allocated"):
    assert torch.accelerator.memory_allocated() == 3 << 20
    torch.accelerator.empty_cache()
torch.cuda.set_per_process_memory_fraction(0.5)
if hasattr(torch.cuda, "get_per_process_memory_fraction"):
    assert torch.cuda.get_per_process_memory_fraction() == 0.5


def made():
    return torch.empty(5 << 20, dtype=torch.uint8, device="cuda")


def history():
    return torch.cuda.memory._snapshot()["device_traces"][0]


torch.cuda.memory._record_memory_history(max_entries=1000)
kept, side = made(), torch.cuda.Stream()
kept.record_stream(side)
del kept
kept = made()
torch.cuda.synchronize()
made()
entries = history()
assert [e["action"] for e in entries if e["size"] == 5 << 20 and e["action"][:7] != "segment"].count("free_completed") == 2, entries
assert [e["action"] for e in entries if not e["action"].startswith("segment")][:2] == ["alloc", "free_requested"], entries
assert all(e["frames"][0]["name"] == "made" and e["frames"][1]["name"] == "<module>" for e in entries if e["action"] == "alloc")
assert [b["frames"][0]["name"] for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["address"] == kept.data_ptr()] == ["made"]
torch.cuda.memory._dump_snapshot("history.pickle")
torch.cuda.memory._record_memory_history(None)
made()
assert len(history()) == len(entries)  # what was there stays
if "clear_history" in str(inspect.signature(torch.cuda.memory._record_memory_history_impl)):  # not up to 2.2
    torch.cuda.memory._record_memory_history(max_entries=3, context=None, clear_history=True, **(
        {"skip_actions": ["free_requested"]} if "skip_actions" in str(inspect.signature(torch.cuda.memory._record_memory_history)) else {}))
    for _ in range(5):
        made()
    entries = history()
    assert len(entries) == 3 and not any(e["frames"] for e in entries), entries
    torch.cuda.memory._record_memory_history(None)
del held, kept
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0, torch.cuda.memory_reserved()
print("answered")
