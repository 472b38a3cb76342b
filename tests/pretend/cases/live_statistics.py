"""torch.cuda answers under a policy as it does without: "answered" when all is right."""
import inspect
from support.small import cuda, torch
import cufrag

# run: run --keep-writes --policy vmm --record live.cft
# expect: answered
# check: os.path.getsize("snapshot.pickle") > 0
# the history of a snapshot is one that every command reads
# run: info history.pickle
# match:  4 allocs, 2 frees

held = cuda.empty(3 << 20, dtype=torch.uint8)
cuda.empty(1000)
stats = torch.cuda.memory_stats()
assert len(stats) in (119, 122, 123), len(stats)
assert torch.cuda.memory_allocated() == 3 << 20 < torch.cuda.max_memory_allocated() <= torch.cuda.memory_reserved()
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 3 << 20
assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary() == cufrag.torch.memory_summary()
segments = torch.cuda.memory_snapshot()
blocks = [b for s in segments for b in s["blocks"]]
assert torch.cuda.memory_reserved() == sum(s["total_size"] for s in segments) == sum(b["size"] for b in blocks)
assert any(b["address"] == held.data_ptr() and b["state"] == "active_allocated" for b in blocks)
torch.cuda.memory._dump_snapshot("snapshot.pickle")
seen = []
torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
try:
    cuda.empty(1 << 46, dtype=torch.uint8)
except torch.cuda.OutOfMemoryError as error:
    assert "cufrag" in str(error), error
assert seen and seen[0][1] == 1 << 46, seen
assert cufrag.torch.memory_stats()["num_ooms"] == 1
assert cufrag.torch.policy() == "vmm" and cufrag.torch.driver_calls()["cuMemMap"]["count"] and cufrag.torch.counters()
if hasattr(torch, "accelerator") and hasattr(torch.accelerator, "memory_allocated"):
    assert torch.accelerator.memory_allocated() == 3 << 20
    torch.accelerator.empty_cache()
torch.cuda.set_per_process_memory_fraction(0.5)
if hasattr(torch.cuda, "get_per_process_memory_fraction"):
    assert torch.cuda.get_per_process_memory_fraction() == 0.5

def made():
    return cuda.empty(5 << 20, dtype=torch.uint8)

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
others = [e for e in entries if not e["action"].startswith("segment")]
assert [e["action"] for e in others if e["size"] == 5 << 20].count("free_completed") == 2, entries
assert [e["action"] for e in others][:2] == ["alloc", "free_requested"], entries
assert all([f["name"] for f in e["frames"][:2]] == ["made", "<module>"] for e in others if e["action"] == "alloc")
blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["address"] == kept.data_ptr()]
assert [b["frames"][0]["name"] for b in blocks] == ["made"]
torch.cuda.memory._dump_snapshot("history.pickle")
torch.cuda.memory._record_memory_history(None)
made()
assert len(history()) == len(entries)  # the entries stay
if "clear_history" in str(inspect.signature(torch.cuda.memory._record_memory_history_impl)):  # not up to 2.2
    takes_actions = "skip_actions" in str(inspect.signature(torch.cuda.memory._record_memory_history))
    torch.cuda.memory._record_memory_history(max_entries=3, context=None, clear_history=True,
                                             **({"skip_actions": ["free_requested"]} if takes_actions else {}))
    for _ in range(5):
        made()
    entries = history()
    assert len(entries) == 3 and not any(e["frames"] for e in entries), entries
    torch.cuda.memory._record_memory_history(None)
del held, kept
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0, torch.cuda.memory_reserved()
print("answered")
