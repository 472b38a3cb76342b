# several traces: one verdict; the document has them all
"$CUFRAG" verify "$TRACES/seeddemo.default.cft" "$TRACES/modelpar.default.cft"
"$CUFRAG" verify "$TRACES/seeddemo.default.cft" "$TRACES/gnn.default.cft" --json - | grep -E '"(trace|verdict)":'
"$CUFRAG" verify "$TRACES/gnn.default.cft" "$TRACES/seeddemo.default.cft" --conf max_split_size_mb:128 |
	grep -E '^(trace|verdict)'
"$CUFRAG" verify "$TRACES/gnn.default.cft" "$TRACES/seeddemo.default.cft" --conf max_split_size_mb:128 > out
