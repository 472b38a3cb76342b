# every command settles a recording and says the limit that it found, as compare and verify do
O=$SHARED/torch/oomcap.default.pickle.xz
[ -f "$O" ] || { echo "no shared traces" >&2; exit 77; }
"$CUFRAG" info "$O" --json i.json | grep -E '^(limit|checked)'
"$CUFRAG" import "$O" -o o.cft | tail -1
"$CUFRAG" gen repeat "$O" --times 2 -o r.cft | tail -1
"$CUFRAG" verify "$O" | head -1
"$CUFRAG" plan "$O" --time 0.1 --json p.json | head -1
"$CUFRAG" fit "$O" --policies recorded | grep '^# rec'
"$CUFRAG" tune "$O" --budget 3 --json t.json | grep -E '^# (objective|rec)|refuses|baseline)'
"$CUFRAG" tune "$O" --budget 3 --limit 8G | grep -cE '^# recording.*holds'
"$CUFRAG" tune "$O" --budget 3 --objective card | grep -oE 'not applied.*'
"$CUFRAG" explain "$O" --at oom | grep -o 'under a limit of [0-9.]* GiB\|^limit.*'
python3 - << 'EOF'
import json
i, p, t = (json.load(open(n + ".json")) for n in "ipt")
print(i["devices"][0]["recording"] == p["recordings"][0]["recording"], i["devices"][0]["recording"])
print([(x["refused_count"], x["completed"]) for x in t["tried"]], t["baseline"]["refused_count"])
EOF
# a recording that no limit explains: its differences are shown, and no row is called recorded
V=$SHARED/torch/varlen.split128.pickle.xz
"$CUFRAG" info "$V" | grep -E '^checked'
"$CUFRAG" tune "$V" --budget 2 | grep -E '^# rec'
