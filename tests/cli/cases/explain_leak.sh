"$CUFRAG" explain "$TRACES/leak.frames.cft" --folded live.folded --speedscope live.json --top 4
cut -c1-150 live.folded
python3 -c 'import json; d = json.load(open("live.json")); print(d["profiles"][0]["endValue"], sum(d["profiles"][0]["weights"]))'
