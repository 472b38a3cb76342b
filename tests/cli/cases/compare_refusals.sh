# a comparison of a recording with refusals opens with them: table, JSON, page
"$CUFRAG" compare "$TRACES/oomcap.default.cft" --policies 'recorded;native;buddy' --optimum off --json c.json > table.txt
sed -n '3,17p' table.txt
sed -n '/^answer/p' table.txt
COLUMNS=60 "$CUFRAG" compare "$TRACES/oomcap.default.cft" --policies recorded --optimum off | sed -n '/^9 requests/,/^And 1/p'
python3 - << 'EOF'
import json
t = json.load(open("c.json"))["traces"][0]
print(t["limit_bytes"], t["refused_when_recorded_count"], len(t["refusals"]))
for r in t["refusals"]:
    m = r["memory"]
    # all that is reserved is accounted for, and what was refused had no room in one piece
    parts = sum(m[k + "_bytes"] for k in ("requested", "rounding", "waiting", "non_releasable", "releasable", "other"))
    print(r["event"], r["bytes"], r["as_recorded"], parts == m["reserved_bytes"], m["largest_free_bytes"] < r["bytes"],
          m["reserved_bytes"] + r["bytes"] > t["limit_bytes"], [o["outcome"] for o in r["outcomes"]])
EOF
# the page: before any answer
SOURCE_DATE_EPOCH=0 "$CUFRAG" compare "$TRACES/oomcap.default.cft" --policies 'recorded;native' --optimum off --no-host --formats svg --out page > out.txt
grep -oE 'class="(warn|answer|tiles)"|9 requests were refused when recorded|<dt>Recorded under|limit 7.50 GiB, as recorded; verified identical</dd>' page/report.html
# a recording without refusals does not mention them
"$CUFRAG" compare "$TRACES/gnn.default.cft" --policies recorded --optimum off --json g.json | grep -c refused
grep -E '"(refusals|refused_when_recorded_count)"' g.json
