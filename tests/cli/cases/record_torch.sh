# PyTorch's own recorder, with a torch module that is made up
# needs: python3
export PYTHONDONTWRITEBYTECODE=1 PICKLE=$DATA/seeddemo.pickle.xz
mkdir -p torch
cat > torch/__init__.py << 'P'
import lzma, os, types
class _Memory:
    def set_per_process_memory_fraction(self, *a): pass
    def _record_memory_history(self, enabled, context, stacks, max_entries): print(enabled, context, max_entries)
    def _dump_snapshot(self, path): open(path, "wb").write(lzma.open(os.environ["PICKLE"]).read())
__version__ = "2.11.0"
cuda = types.SimpleNamespace(memory=_Memory(), set_per_process_memory_fraction=None, _lazy_call=lambda f: f())
P
# many libraries look whether torch is there before they load it
echo 'import importlib.util, sys; importlib.util.find_spec("torch"); import torch; print("program", sys.argv[1:])' > train.py
"$CUFRAG" record --torch -o run.cft -- python3 train.py --lr 1 2> /dev/null
"$CUFRAG" info run.cft | grep -E '^format|events'
WORLD_SIZE=2 RANK=1 "$CUFRAG" record --torch --frames --max-entries 9 -o rank.cft -- "$PWD/train.py" 2> /dev/null
echo 'raise SystemExit(4)' >> train.py
"$CUFRAG" record --torch -o four.cft -- python3 train.py 2> /dev/null
echo "exit $?"
echo 'print("nothing")' > train.py
"$CUFRAG" record --torch -o none.cft -- python3 train.py 2> /dev/null
echo "exit $?"
ls -- *.cft
