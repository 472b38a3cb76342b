#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs a command and says its exit status, and what it took if that is more than allowed:
# cost.py SECONDS MIB COMMAND... Seconds are of the processor; MIB 0: no limit.
import resource
import subprocess
import sys

seconds, mib = float(sys.argv[1]), float(sys.argv[2])
done = subprocess.run(sys.argv[3:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
took = used.ru_utime + used.ru_stime
said = "exit %d" % done.returncode
if took > seconds:
    said += ", %.1f s of the processor" % took
if mib and used.ru_maxrss / 1024 > mib:
    said += ", %.0f MiB" % (used.ru_maxrss / 1024)
print(said)
