"$CUFRAG" export "$TRACES/leak.frames.cft" --to perfetto --policy tlsf -o t.json
python3 -c '
import json
d = json.load(open("t.json"))["traceEvents"]
print(len(d), max(e["args"]["bytes"] for e in d if e["name"] == "reserved"), sum(e["ph"] == "B" for e in d), sum(e["ph"] == "E" for e in d))'
"$CUFRAG" replay "$TRACES/leak.frames.cft" --policy tlsf --json - | grep -o '"peak_reserved_bytes": [0-9]*'
"$CUFRAG" export "$TRACES/leak.frames.cft" --to csv -o t.csv
head -3 t.csv; wc -l < t.csv
"$CUFRAG" export "$TRACES/seeddemo.default.cft" --to openmetrics
