# the dashboard is one for Grafana, and asks for metrics that monitor has
# needs: cc python3
. "$DATA/made.sh"
fake_nvml processes
"$CUFRAG" monitor --count 1 --textfile metrics.prom > out.txt
python3 - "$ROOT/docs/grafana/cufrag.json" << 'PY'
import json, re, sys
d = json.load(open(sys.argv[1]))
have = set(re.findall(r"^# TYPE (\S+) gauge", open("metrics.prom").read(), re.M))
for key, kind in (("title", str), ("uid", str), ("schemaVersion", int), ("panels", list), ("templating", dict), ("time", dict)):
    assert isinstance(d[key], kind), key
assert d["schemaVersion"] >= 36
names = {v["name"] for v in d["templating"]["list"]}
assert {v["type"] for v in d["templating"]["list"]} <= {"datasource", "query"}
taken, asked = set(), set()
for p in d["panels"]:
    assert p["type"] in ("timeseries", "stat", "gauge"), p["type"]
    g = p["gridPos"]
    assert g["x"] >= 0 and g["x"] + g["w"] <= 24 and g["h"] > 0
    cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
    assert not cells & taken, p["title"]
    taken |= cells
    assert p["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert p["targets"] and len({t["refId"] for t in p["targets"]}) == len(p["targets"])
    for t in p["targets"]:
        assert t["expr"].count("(") == t["expr"].count(")") and t["expr"].count("{") == t["expr"].count("}")
        assert set(re.findall(r"\$(\w+)", t["expr"])) <= names
        asked |= set(re.findall(r"cufrag_\w+", t["expr"]))
assert len({p["id"] for p in d["panels"]}) == len(d["panels"])
print("asked for, not there:", sorted(asked - have))
print("there, not asked for:", sorted(have - asked))
PY
