# record --torch of programs that start the processes of a job: each rank is in the recording, in the order of the ranks
# needs: python3
export PYTHONDONTWRITEBYTECODE=1
mkdir torch
cat > torch/__init__.py << 'P'
import os, shutil, types
class _Memory:
    def set_per_process_memory_fraction(self, *a): pass
    def _record_memory_history(self, **a): pass
    def _dump_snapshot(self, path): shutil.copy(os.environ["TRACES"] + ("/gnn" if os.environ.get("RANK") == "1" else "/seeddemo") + ".default.cft", path)
__version__ = "2.11.0"
cuda = types.SimpleNamespace(memory=_Memory(), set_per_process_memory_fraction=None, _lazy_call=lambda f: f(), device_count=lambda: 1, memory_stats=lambda d: {"allocation.all.allocated": 1})
P
echo 'import os, torch; print("rank", os.environ.get("RANK"))' > train.py
# the later rank first, as its smaller process number would have it
cat > launch.py << 'P'
import os, subprocess, sys
for rank in "1", "0":
    subprocess.run([sys.executable, *sys.argv[1:]], env=dict(os.environ, RANK=rank, WORLD_SIZE="2"))
os._exit(0)
P
cat > spawned.py << 'P'
import multiprocessing, os, sys
def work(rank):
    os.environ["RANK"] = str(rank)
    import torch
    print("spawned", rank, flush=True)
if __name__ == "__main__":
    for rank in 1, 0:
        p = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(rank,))
        p.start()
        p.join()
P
{ echo '#!/usr/bin/env python3'; cat launch.py; } > torchrun
chmod +x torchrun
see() {
	"$CUFRAG" record --torch -o run.cft -- "$@" 2>&1 && "$CUFRAG" info run.cft | grep '^  events'
	rm -f run.cft
}
see ./torchrun train.py
see python3 -m launch -E -u train.py
see launch.py train.py
see sh -c 'RANK=1 python3 train.py; RANK=0 python3 train.py'
see python3 spawned.py fork
see python3 spawned.py spawn
# one that dies leaves what the others did
cat > dies.py << 'P'
import os, signal, torch
if os.environ["RANK"] == "0": os.kill(os.getpid(), signal.SIGKILL)
P
see launch.py dies.py
# a file of Python without #!, by any way; no GPU
echo 'print("plain")' > plain.py
see plain.py
"$CUFRAG" record --no-gpu -o run.cft -- plain.py 2>&1
"$CUFRAG" run --no-gpu -- plain.py
"$CUFRAG" record --no-gpu --stacks -o run.cft -- plain.py 2>&1
"$CUFRAG" record --torch --again -o run.cft -- plain.py 2>&1
"$CUFRAG" record --world 4 -o run.cft -- plain.py 2>&1
mkdir lib && : > lib/libnvidia-ml.so.1
LD_LIBRARY_PATH=$PWD/lib "$CUFRAG" monitor --count 1 2>&1 | sed 's/^cufrag monitor: .*(without a GPU: /no card: /; s/)$//'
rm -rf ./*
