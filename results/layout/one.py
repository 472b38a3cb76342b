# SPDX-License-Identifier: Apache-2.0
import json, runpy, sys, torch
limit, sys.argv = int(sys.argv[1]), ["gpt.py"] + sys.argv[2:]
total = torch.cuda.get_device_properties(0).total_memory
if limit:
    torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total)
status = "completes"
try:
    runpy.run_path(__file__.replace("one.py", "gpt.py"), run_name="__main__")
except torch.cuda.OutOfMemoryError:
    status = "out of memory"
s = torch.cuda.memory_stats()
print("RESULT " + json.dumps([status, s["reserved_bytes.all.peak"], s["active_bytes.all.peak"], s["num_alloc_retries"], s["num_ooms"]]), flush=True)
