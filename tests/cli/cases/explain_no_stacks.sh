"$CUFRAG" explain "$TRACES/gnn.default.cft" --folded out.folded
