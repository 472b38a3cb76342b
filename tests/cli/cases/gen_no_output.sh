"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --times 2
