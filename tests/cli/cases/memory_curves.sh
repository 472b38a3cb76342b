# the windows of memory.csv hold the extremes of their events, loss.csv what is at the end of some,
# also of a trace that is read while it is replayed, whose length is found out late
mkdir bin
printf '#!/bin/sh\necho drawn > "$5"\n' > bin/gnuplot
chmod +x bin/gnuplot
PATH=$PWD/bin:$PATH
for count in 1024 1025 5000; do
	seq $count | awk '{ print $0 % 3 ? "alloc," $0 "," $0 * $0 % 9973 + 1 : "free," $0 - 1 "," }' > $count.csv
	"$CUFRAG" import $count.csv -o $count.cft > /dev/null
done
cat > check.py <<'END'
import csv

def rows(path):
    for row in csv.DictReader(open(path)):
        yield {name: int(value) for name, value in row.items() if value.isdigit()}

*windows, end = rows("out/memory.csv")
*losses, _ = rows("out/loss.csv")
events = [*rows("events.csv")]
size = 1
while size * 1024 < len(events):
    size *= 2
assert [w["event"] for w in windows] == list(range(0, len(events), size))
for w in windows:
    for name in "requested", "active", "reserved":
        values = [e[name + "_bytes"] for e in events[w["event"]:w["event"] + size]]
        assert (w[name + "_min_bytes"], w[name + "_max_bytes"]) == (min(values), max(values))
ends = {e["event"]: e for e in losses}
assert len(ends) > 500
for name in "requested_bytes", "reserved_bytes":
    assert all(events[at][name] == e[name] for at, e in ends.items())
for name in "requested", "active", "reserved":
    assert end[name + "_min_bytes"] == end[name + "_max_bytes"] == events[-1][name + "_bytes"]
END
for trace in *.cft; do
	"$CUFRAG" export $trace --policy pytorch --to csv -o events.csv
	for stream in --stream --stream=never; do
		"$CUFRAG" replay $trace --policy pytorch $stream --out out > /dev/null
		python3 check.py || echo "$trace $stream"
	done
done
