echo '{"schema": 2, "results": []}' > x.json
"$CUFRAG" diff x.json "$TRACES/gnn.default.cft"
