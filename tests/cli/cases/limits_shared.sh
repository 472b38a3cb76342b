# recordings under a limit, with garbage collection, or that began late, without --limit: compare, fit and tune find the same,
# identical by inference, or all of them say what differs and call nothing recorded
# needs: python3
[ -f "$SHARED/torch/oomcap.default.pickle.xz" ] || { echo "no shared traces" >&2; exit 77; }
for t in gnn.gc gnn.late gnn.split128 gnn.bigseg moe.pow2list oomcap.default oomcap.expandable varlen.gc varlen.split128; do
	"$CUFRAG" import "$SHARED/torch/$t.pickle.xz" -o t.cft > /dev/null 2>&1 || echo "$t: not read"
	"$CUFRAG" compare t.cft --policies recorded --optimum off --no-host --json c.json > table 2> /dev/null
	"$CUFRAG" fit t.cft --policies recorded --json f.json > /dev/null 2>&1
	"$CUFRAG" tune t.cft --budget 2 --json u.json > tuned 2>&1
	python3 - "$t" << 'EOF'
import json, sys
c, f, u = (json.load(open(n + ".json")) for n in "cfu")
def recording(o):
    if isinstance(o, dict):
        if "identical" in o and "recorded_peak_bytes" in o:
            return o
        o = list(o.values())
    for v in o if isinstance(o, list) else ():
        r = recording(v)
        if r:
            return r
of = [recording(x) for x in (c, f, u)]
assert of[0] == of[1] == of[2], of
r, result = of[0], c["results"][0]
if r["identical"]:
    assert result["peak_reserved_bytes"] == r["recorded_peak_bytes"], (result["peak_reserved_bytes"], r)
    assert result["refused_again_count"] == r["refused_count"], r
    print(sys.argv[1], "identical, limit", r["limit_bytes"], r["limit_source"], "refused", r["refused_count"])
else:
    said = open("table").read() + open("tuned").read()
    assert r["first_difference"] and r["first_difference"][:40] in said and "the recorded '" not in said, said
    print(sys.argv[1], "not identical from event", r["first_difference_event"])
EOF
done
