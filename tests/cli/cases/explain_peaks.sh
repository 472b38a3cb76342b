# the moment that explain, view and the notebook show is the one at which most is live, of all bundled recordings; the peak of reserved
# memory is another one, which --at reserved shows; both are named
for t in "$TRACES"/*.cft; do
	"$CUFRAG" explain "$t" --at peak --json peak.json > peak.txt 2> /dev/null
	"$CUFRAG" explain "$t" --at reserved --json reserved.json > /dev/null 2>&1
	"$CUFRAG" view "$t" --no-notes --json view.json > /dev/null 2>&1
	python3 - "${t##*/}" << 'EOF'
import json, sys
live, reserved, view = (json.load(open(n + ".json")) for n in ("peak", "reserved", "view"))
lane = max(view["lanes"], key=lambda l: l["peak_reserved_bytes"])
print(sys.argv[1], "%.0f %% and %.0f %% of the most live" % tuple(100 * m["allocated_bytes"] / lane["peak_allocated_bytes"] for m in (live, reserved)),
      (live["event"], reserved["event"]) == (lane["peak_event"], lane["peak_reserved_event"]) == (live["peak_live_event"], live["peak_reserved_event"]),
      live["peak_reserved_bytes"] == reserved["reserved_bytes"] == lane["peak_reserved_bytes"], live["allocated_bytes"] >= 0.99 * live["peak_live_bytes"])
EOF
done
"$CUFRAG" explain --brief "$TRACES/gnn.default.cft"
"$CUFRAG" explain --brief "$TRACES/gnn.default.cft" --at reserved
# a what-if ends at the request that it refuses: one peak, that before it
printf 'action,id,size,stream,time_us\nalloc,1,6442450944,0,1\nalloc,2,6442450944,0,2\nfree,1,,,3\nalloc,3,8589934592,0,4\n' > what_if.csv
for c in 'replay --policy' 'explain --at peak --policy' 'view --policies'; do
	"$CUFRAG" $c native what_if.csv --capacity 10G --json - 2> /dev/null | grep -o -m1 '"peak_reserved_bytes": [0-9]*'
done
