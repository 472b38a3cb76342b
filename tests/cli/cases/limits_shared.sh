# recordings under a limit, with garbage collection, or that began late, without --limit: identical
# by inference, or what differs is said; tests/agree compares the commands
# needs: python3
[ -f "$SHARED/torch/oomcap.default.pickle.xz" ] || { echo "no shared traces" >&2; exit 77; }
for t in gnn.gc gnn.late gnn.split128 gnn.bigseg moe.pow2list oomcap.default oomcap.expandable varlen.gc varlen.split128; do
	"$CUFRAG" info "$SHARED/torch/$t.pickle.xz" --json i.json > /dev/null
	python3 - "$t" << 'EOF'
import json, sys
r = json.load(open("i.json"))["devices"][0]["recording"]
print(sys.argv[1], *(["identical, limit", r["limit_bytes"], r["limit_source"], "refused", r["refused_count"]] if r["identical"] else
                     ["not identical from event", r["first_difference_event"]]))
EOF
done
