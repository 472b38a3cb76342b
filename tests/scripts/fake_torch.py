# SPDX-License-Identifier: Apache-2.0
"""As much of torch as scripts/record_torch.py touches. The test puts it on sys.path as `torch`."""
import json
import os
import sys
import types

cuda = types.ModuleType("torch.cuda")
cuda.memory = types.ModuleType("torch.cuda.memory")
queued = []
calls = []


def _lazy_call(function):
    queued.append(function)


def use():
    """What the first CUDA call of a program does: run what waits for it."""
    while queued:
        queued.pop(0)()


def record(**settings):
    calls.append(settings)


def dump(path):
    with open(path, "w", encoding="ascii") as f:
        json.dump({"settings": calls, "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF")}, f)


cuda._lazy_call = _lazy_call
cuda.use = use
_C = types.SimpleNamespace(_cuda_setMemoryFraction=lambda fraction, device: None)
cuda.set_per_process_memory_fraction = lambda part, device=0: _C._cuda_setMemoryFraction(part, device)
cuda.device_count = lambda: 2
cuda.is_initialized = lambda: False
cuda.current_device = lambda: 0
cuda.memory_stats = lambda device: {"reserved_bytes.all.peak": 4096 if device == 0 else 0}
cuda.memory_reserved = lambda device: 2**20
cuda.get_device_properties = lambda device: types.SimpleNamespace(name="NVIDIA L4", total_memory=23583784960)
cuda.list_gpu_processes = lambda device: "GPU:0\nprocess %10d uses %12.3f MB GPU memory" % (os.getpid(), 601)
cuda.memory._record_memory_history = record
cuda.memory._dump_snapshot = dump
sys.modules["torch.cuda"] = cuda
sys.modules["torch.cuda.memory"] = cuda.memory
__version__ = "2.11.0+cu130"
conf_at_import = os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
