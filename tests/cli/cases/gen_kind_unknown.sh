"$CUFRAG" gen repat "$TRACES/gnn.default.cft" --times 2 -o x.cft
