# a snapshot of PyTorch 2.2 does not hold its settings: those of the environment that it was recorded in
cat > program.py << 'END'
import os, pickle
base = 0x7f0000000000
def entry(action, size, t):
    return {"action": action, "addr": base, "size": size, "stream": 0, "frames": [], "time_us": t}
trace = [entry("segment_alloc", 20 << 20, 1), entry("alloc", 4 << 20, 2), entry("free_requested", 4 << 20, 3), entry("free_completed", 4 << 20, 3)]
segment = {"device": 0, "address": base, "total_size": 20 << 20, "stream": 0, "segment_type": "large", "is_expandable": False,
           "blocks": [{"address": base, "size": 20 << 20, "requested_size": 0, "state": "inactive"}]}
with open(os.path.join(os.environ["CUFRAG_RECORD"], "17.pickle"), "wb") as f:
    pickle.dump({"segments": [segment], "device_traces": [trace]}, f, protocol=4)
with open(os.path.join(os.environ["CUFRAG_RECORD"], "17.json"), "w") as f:
    f.write('{"rank": 0, "world": 1, "torch": "2.2.2", "values": "rules", "steered": []}')
END
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 "$CUFRAG" record --no-gpu -o run.cft -- python3 program.py > /dev/null 2>&1
"$CUFRAG" info run.cft | grep -A1 -E '^(recorded by|settings)'
"$CUFRAG" record --no-gpu -o run.cft -- python3 program.py > /dev/null 2>&1
"$CUFRAG" info run.cft | grep '^settings'
# 2.3 and 2.4 write the same; the program says which it is
sed -i 's/pickle.dump({/pickle.dump({"allocator_settings": {"expandable_segments": False}, /; s/2.2.2/2.3.1/' program.py
"$CUFRAG" record --no-gpu -o run.cft -- python3 program.py > /dev/null 2>&1
"$CUFRAG" info run.cft | grep '^recorded by'
