# lines of Python in recorded stacks, with and without the interpreter's lock, beside what Python itself says
# needs: cc
python3 -c 'import ctypes, sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2> /dev/null || { echo 'no Python 3.10 to 3.13' >&2; exit 77; }
. "$DATA/made.sh"
fake_cuda
export PYTHONUTF8=1
cat > train.py << 'E'
import ctypes, sys, threading, traceback
cuda = (ctypes.PyDLL if sys.argv[1] == "held" else ctypes.CDLL)("libcuda.so.1")
cuda.cuInit(0)
def take(n):
    stack = traceback.extract_stack(sys._getframe())
    print(*(f"{f.filename.rsplit('/')[-1]}:{f.lineno + (f.name == 'take') * 3}:{f.name}" for f in reversed(stack)))
    p = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_uint64(n)); return p.value
class Model:
    def step(self, n):
        for size in (1, 2):
            take(n * size)
def steps(model):
    model.step(100)
    yield model
    yield model.step(200)
def main():
    list(steps(Model()))
    thread = threading.Thread(target=lambda: Model().step(300))
    thread.start()
    thread.join()
    sorted([3, 1], key=lambda n: take(n))
    exec("def grüße(n):\n    return take(n)\ngrüße(5)")
main()
E
cat > stacks.py << 'E'
import sys
frames, stacks = {}, {}
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("#frame "):
        address, name, file, at = line[7:-1].split("\t")
        if at.startswith(":"):
            frames[address] = f"{file.rsplit('/')[-1]}{at}:{name.rsplit('.')[-1]}"
    elif line.startswith("#stack "):
        _, number, *addresses = line.split()
        stacks[number] = " ".join(frames[a] for a in addresses if a in frames)
    elif line.startswith("alloc,"):
        print(stacks[line.strip().split(",")[7]])
E
"$CUFRAG" record --stacks --by preload -o run.cft -- python3 train.py free > said.txt
for lock in held free; do
	CUFRAG_RECORD_STACKS=1 recorded $lock python3 train.py $lock > said.txt
	python3 stacks.py $lock.*.csv > stacks.txt
	cmp said.txt stacks.txt && echo "$lock: $(wc -l < stacks.txt) stacks are the program's own"
done
"$CUFRAG" explain run.cft --by stack 2> /dev/null | grep -oE 'train.py:[0-9]+ [A-Za-z.]+' | sed 's/Model.step/step/' | sort -u
# a version that is not known: no lines of Python, and it says so once
sed 's/3\.1[0-3]\.\x00/3.99.\x00/g' "$recorder" > other.so
CUFRAG_RECORD_STACKS=1 LD_PRELOAD=$PWD/other.so CUFRAG_RECORD_BY=preload CUFRAG_RECORD_CUDA=other python3 train.py free 2>&1 > /dev/null | sed 's/Python [^;]*;/Python VERSION;/'
grep -c '	:' other.*.csv || true
