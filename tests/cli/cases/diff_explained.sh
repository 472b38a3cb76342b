# What explain wrote of a former run is a side of diff: the same as the recording itself.
"$CUFRAG" explain "$TRACES/gnn.default.cft" --json before.json > /dev/null || exit
"$CUFRAG" diff before.json "$TRACES/gnn.default.cft" | head -n 1
"$CUFRAG" diff before.json "$TRACES/gnn.expandable.cft" --json - | grep -E '"(estimate|peak_[a-z]*_bytes)"'
