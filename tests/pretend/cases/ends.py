"""What was asked for is recorded, however the program ends: ends.py HOW."""
import atexit
import os
import signal
import sys

# python:
#   for how, status in ("exit", 5), ("os_exit", 5), ("raise", 1), ("exec", 5), ("SIGTERM", 143):
#       run("record -- " + how, status)
#       assert info()["devices"][0]["allocs_count"] == 2, how
#       os.remove("run.cft")
# fails 3: record -- SIGKILL
# match: was killed \(SIGKILL\)
# check: not os.path.exists("run.cft")
# fails 143: record -- last_steps
# never: Traceback
# match: 1 device, 2 events
how = sys.argv[1]
if how == "last_steps":  # in Python's last steps, after the recording is written
    atexit.register(os.kill, os.getpid(), signal.SIGTERM)
import torch  # noqa: E402

if how == "last_steps":
    torch.ones(1000, device="cuda")
    sys.exit()
torch.ones(1000, device="cuda").add(1)
if how == "exec":
    os.execv(sys.executable, [sys.executable, sys.argv[0], "os_exit"])
elif how == "raise":
    raise ValueError(how)
elif how.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, how))
{"exit": sys.exit, "os_exit": os._exit}.get(how, print)(5)
