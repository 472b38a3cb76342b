"$CUFRAG" diff "$TRACES/gnn.late.cft" "$TRACES/leak.frames.cft" --fail-on-growth 5% --top 3
