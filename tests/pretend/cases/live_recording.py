"""A policy's recording can be read while the program runs, and however that ends: HOW."""
import glob
import signal
import subprocess
from support.small import clean, cuda, encoder, os, sys, train, until

# it can be read while the program runs, and is there when that is killed
# case: killed
# python:
#   run("run --policy vmm --record run.cft -- killed", status=137)
#   assert not os.path.exists("run.cft.parts")
#   seen, every = int(re.findall(r"^seen .* (\d+) allocs", log, re.M)[-1]), sum(p[1] for p in peaks())
#   assert 100 < seen <= every, (seen, every)

# a program that becomes another one (exec) keeps what it recorded before
# case: chain
# run: run --policy vmm --record run.cft -- chain
# run: info run.cft
# check: re.findall("^  peak live.* in (\d+) blocks", log, re.M) == ["50", "3"]
written = 0
if sys.argv[1] != "killed":
    kept = [cuda.zeros(1 << 20) for _ in range(50 if sys.argv[1] == "chain" else 3)]
    if sys.argv[1] == "chain":
        os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
    sys.exit()
for _ in range(3):
    train(encoder(), 4, 128, 512)
    until(lambda: sum(map(os.path.getsize, glob.glob("run.cft.parts/*.cft"))) > written)
    path, = glob.glob("run.cft.parts/*.cft")
    written = os.path.getsize(path)
    text = subprocess.check_output([os.environ["CUFRAG"], "info", path], env=clean(), text=True)
    print("seen", next(line for line in text.splitlines() if "allocs" in line).replace(",", ""), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
