"""What others see of a policy while the program runs: monitor its bytes, info its recording."""
import glob
import json
import subprocess
from support.small import clean, cuda, encoder, os, torch, train, until
import cufrag

# needs: tool cc
# python:
#   if not os.access("/dev/shm", os.W_OK):
#       skip("no shared memory")
#   os.mkdir("lib")
#   shell("cc -w -std=gnu17 -O1 -shared -fPIC -o lib/libnvidia-ml.so.1 %s/tests/cli/data/fake_nvml.c" % root)
#   run("run --policy vmm --record run.cft", FAKE_LIBRARIES=os.path.abspath("lib"))
# expect: seen by others
train(encoder(), 4, 128, 512)
env = dict(clean(), FAKE_PID=str(os.getpid()), FAKE_NVML="self", LD_LIBRARY_PATH=os.environ["FAKE_LIBRARIES"])
kinds = "requested_bytes", "allocated_bytes", "reserved_bytes"

def say(*what):
    return subprocess.check_output([os.environ["CUFRAG"], *what], env=env, text=True)

def seen():
    held = json.dumps(json.loads(say("monitor", "--count", "1", "--json").splitlines()[0])).split('"held": ')[1]
    return held.startswith("{") and [json.loads(held.split("}")[0] + "}")[kind] for kind in kinds]

kept = [cuda.empty(5 << 20, dtype=torch.uint8)]
for larger in (0, 64 << 20):
    kept.append(cuda.empty(larger, dtype=torch.uint8))
    stats = torch.cuda.memory_stats()
    mine = [stats[kind + ".all.current"] for kind in kinds]
    until(lambda: seen() == mine)
    assert seen() == mine, (seen(), mine)
    cufrag.torch.library().frag_live_flush()
    path, = glob.glob("run.cft.parts/*.cft")
    assert "%d allocs" % stats["allocation.all.allocated"] in say("info", path).replace(",", "")
print("seen by others")
