#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs a command with a terminal as standard error and prints which lines of progress it showed,
# without figures, each once, in order: progress.py COMMAND...
import os
import pty
import re
import subprocess
import sys

master, slave = pty.openpty()
env = {**os.environ, "TERM": "xterm"}
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave, env=env)
os.close(slave)
said = b""
while True:
    try:
        got = os.read(master, 65536)
    except OSError:
        break
    if not got:
        break
    said += got
shown = []
for line in re.split(r"\r|\n|\x1b\[K", said.decode()):
    line = re.sub(r"( +\d+ %| \d+|, \d+ s|, about \d+ s left)+$", "", line)
    if line and line not in shown:
        shown.append(line)
print("exit %d: %s" % (child.wait(), "; ".join(shown)))
