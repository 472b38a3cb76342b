"$CUFRAG" explain "$TRACES/leak.frames.cft" --stacks live.folded --top 4
"$CUFRAG" explain "$TRACES/leak.frames.cft" --stacks live.json > /dev/null
cut -c1-150 live.folded
python3 -c 'import json; d = json.load(open("live.json")); print(d["profiles"][0]["endValue"], sum(d["profiles"][0]["weights"]))'
