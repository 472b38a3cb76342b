# several traces: a line each, the largest and the spread; JSON has them all
"$CUFRAG" info "$TRACES/modelpar.default.cft" "$TRACES/gnn.default.cft"
"$CUFRAG" info "$TRACES/modelpar.default.cft" "$TRACES/gnn.default.cft" --json - |
	grep -c '"trace"'
# one that is missing: nothing is said of the others
"$CUFRAG" info "$TRACES/gnn.default.cft" none.cft
