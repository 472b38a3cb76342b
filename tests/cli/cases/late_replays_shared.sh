# of a history that began late the replays of its own settings reserve at peak what was recorded, in the order and of the ages that
# choices show: without these, 2.15's with garbage collection reserved 0.6 % less
V=$SHARED/versions
[ -d "$V" ] || { echo "no shared traces" >&2; exit 77; }
python3 - "$V" << 'EOF'
import lzma, pickle, sys
for name, share in (("2.15.0.mix.gc", 0.3), ("2.12.1.mix.expandable", 0.6), ("2.13.0.mix.default", 0.6)):
    with lzma.open("%s/%s.pickle.xz" % (sys.argv[1], name)) as f:
        s = pickle.load(f)
    s["device_traces"] = [t[int(len(t) * share):] for t in s["device_traces"]]
    with open(name + ".pickle", "wb") as f:
        pickle.dump(s, f, protocol=4)
EOF
for f in *.pickle; do
	"$CUFRAG" compare "$f" --policies recorded --optimum off --json c.json > /dev/null
	"$CUFRAG" explain "$f" --at peak --json e.json > /dev/null
	python3 - "$f" << 'EOF'
import json, sys
def find(o, k):
    for key, v in o.items() if isinstance(o, dict) else enumerate(o) if isinstance(o, list) else ():
        if key == k:
            return v
        v = find(v, k)
        if v is not None:
            return v
c, e = (json.load(open(n)) for n in ("c.json", "e.json"))
peak = find(c, "recorded_peak_bytes")
print(sys.argv[1], peak, find(c, "peak_reserved_bytes") == peak, find(e, "peak_reserved_bytes") == peak)
EOF
done
