"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --times 1G -o x.cft
