# What people have in hand beside recordings is read, and says no more than it can.
exec 2>&1
try() {
	echo "== $*"
	"$CUFRAG" "$@" -q > said || echo "exit $?"
	grep -vE '^$|^#' said | head -${lines:-2} | cut -c1-330
}
# PyTorch's export_memory_timeline: times in us and sizes by category, or events in ns
python3 - <<'END'
import json
M = 1 << 20
sizes = [[0, 100 * M, 200 * M, 0, 0, (i % 8) * 50 * M, 0, 0, 5 * M] for i in range(64)]
json.dump([[1700000000000000 + i * 1000 for i in range(64)], sizes], open("timeline.json", "w"))
events = [[-1, 1, 100 * M, 0]]
for i in range(64):
    events += [[1000000 * (2 * i + 1), 2, 30 * M, 4], [1000000 * (2 * i + 2), 4, -20 * M, 4]]
json.dump(events, open("timeline.raw.json", "w"))
json.dump(events[:5] + [[1, 2]], open("cut.json", "w"))
END
gzip -k timeline.json
for f in timeline.json timeline.json.gz timeline.raw.json; do try diagnose $f; done
printf '[[1, 2, x' > bad.json
for f in cut.json bad.json; do try summary $f; done
# JAX's memory.prof, with two devices; what explain writes for pprof comes back
gzip -c "$ROOT/tests/conformance/samples/pprof" > memory.prof
try summary memory.prof
try explain memory.prof
try fit memory.prof
"$CUFRAG" explain "$TRACES/leak.frames.cft" -q --stacks live.pb --json a.json > /dev/null
"$CUFRAG" explain live.pb -q --json b.json > /dev/null
for f in a b; do grep -m1 allocated_bytes $f.json; grep -m3 '"site"' $f.json; done
# states: stacks in the blocks, as PyTorch 2.0 writes them and as enabled="state" does
python3 - <<'END'
import pickle
M, A = 1 << 20, 0x7f5000000000
frames = [dict(filename="??", name="torch::unwind::unwind()", line=0), dict(filename="/home/u/net.py", name="load", line=12)]
def block(i, **more): return dict(address=A + i * 64 * M, size=32 * M, requested_size=32 * M, state="active_allocated" if i % 4 else "inactive", **more)
def save(name, more):
    segments = [dict(device=0, address=A + i * 64 * M, total_size=32 * M, stream=0, segment_type="large", blocks=[block(i, **more)]) for i in range(8)]
    pickle.dump(dict(segments=segments, device_traces=[[]]), open(name, "wb"), 4)
save("old.pickle", dict(history=[dict(addr=A, real_size=30 * M, frames=frames)]))
save("state.pickle", dict(frames=frames))
save("later.pickle", dict(frames=[dict(filename="/home/u/net.py", name="collect", line=99)]))
END
for f in old state; do lines=1 try explain $f.pickle; done
# nothing of them is a peak, a step or growth
for c in info explain diagnose "diff later.pickle"; do lines=40 try $c state.pickle; done
"$CUFRAG" diff later.pickle state.pickle --fail-on-growth 5% > /dev/null; echo "exit $?"
"$CUFRAG" diff state.pickle "$TRACES/leak.frames.cft"; echo "exit $?"
"$CUFRAG" summary state.pickle --json - | grep -E 'peak_|verdict|healthy'
for c in tune advise compare plan; do lines=1 try $c old.pickle; done
# CSV of one's own: sizes below 0 are frees, times are seconds or of the day; freed twice
printf 'time,size,addr\n0.5,1048576,0x7f00\n0.75,2048,0x7e00\n1.5,-1048576,0x7f00\n2,1048576,0x7f00\n' > signs.csv
"$CUFRAG" info signs.csv | grep -E 'events|peak live'
printf 'time,action,size,addr\n10:00:00.5,malloc,1048576,0x7f00\n10:00:01.5,free,,0x7f00\n' > words.csv
"$CUFRAG" info words.csv | grep -E 'events|peak live'
echo '10:00:02,free,,0x7f00' >> words.csv
echo '10:00:03,malloc,1,0x7f00' >> words.csv
try info words.csv
# what the driver was asked is answered under the driver's allocator
printf '%s\n' action,id,size,stream,time_us,device,call,stack alloc,1,1048576,0,1,0,cuMemAlloc,0 alloc,2,3145728,0,2,0,cuMemAlloc,0 free,1,,0,3,0,cuMemFree,0 > calls.csv
for c in fit compare tune explain; do "$CUFRAG" $c calls.csv -q | grep -iE '^answer|torch' | cut -c1-120; done
sed 's/cuMemAlloc/&Async/' calls.csv > ordered.csv
"$CUFRAG" fit ordered.csv -q | grep '^answer'
