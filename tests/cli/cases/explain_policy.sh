"$CUFRAG" explain "$TRACES/gnn.default.cft" --policy buddy --at event:12542 --top 3 --json x.json
"$CUFRAG" explain "$TRACES/gnn.default.cft" --policy tlsf --limit 5G --at oom --top 2 --by stack | sed -n '2,27{/^event/,/^$/!p}'
python3 -c '
import json
d = json.load(open("x.json"))
print(sum(s["allocated_bytes"] for s in d["sites"]) - d["allocated_bytes"],
      sum(s["non_releasable_bytes"] for s in d["sites"]) + d["unheld_bytes"] - d["non_releasable_bytes"])'
