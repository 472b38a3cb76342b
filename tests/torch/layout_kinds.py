# SPDX-License-Identifier: Apache-2.0
"""What programs do to the process that they run in: layout_kinds.py KIND. A small training comes first."""
import os
import random
import signal
import sys
import threading
import time

import torch
import numpy

kind = sys.argv[1]
assert __name__ == "__main__" and sys.modules["__main__"].__file__ == os.path.abspath(__file__) and len(sys.argv) == 2
assert os.environ["CUFRAG_RECORD"] and not [n for n in os.environ if n.startswith("CUFRAG_KEPT")]
assert sys.path[0] == os.path.dirname(os.path.realpath(__file__)) and threading.current_thread() is threading.main_thread()
with open("numbers", "a") as f:
    f.write("%r %r\n" % (random.random(), numpy.random.rand()))
if kind == "folder":
    os.makedirs("plain.new", exist_ok=True)
    os.chdir("plain.new")
if kind == "closed":
    files = [open(os.devnull) for _ in range(200)]
    os.close(0), os.close(1), os.close(2)
if kind == "thread":
    threading.Thread(target=time.sleep, args=(10000,), daemon=True).start()
layer = torch.nn.Linear(512, 512 + len(kind)).cuda()
optimizer = torch.optim.AdamW(layer.parameters())
for _ in range(4):
    layer(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if kind == "exits":
    sys.exit("three is no number")
if kind == "group":
    os.killpg(0, signal.SIGKILL)
if kind == "parent":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3)
if kind == "child":
    if os.fork() == 0:
        time.sleep(10000)
