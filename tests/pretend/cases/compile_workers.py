"""Inductor's processes that hang (a race of Python 3.12) hold the program up less than a minute."""
import atexit
import signal
import torch._inductor.async_compile as compile_later
from support.small import cuda, os, time

# needs: package triton
# needs: import torch._inductor.compile_worker.subproc_pool
# run: record
# expect: compiled True
began = []
atexit.register(lambda: print("compiled", time.monotonic() - began[0] < 60))
pool = compile_later.AsyncCompile.process_pool()
atexit.register(lambda: began.append(time.monotonic()))
cuda.zeros(1)
os.kill(pool.process.pid, signal.SIGSTOP)
