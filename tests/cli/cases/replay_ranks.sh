# several traces: in full, one after the other; one document
"$CUFRAG" replay "$TRACES/seeddemo.default.cft" "$TRACES/mempool.default.cft" --no-host |
	grep -E '^(# .* replay|policy|peak_reserved)' | sed 's,cufrag [^ ]*,cufrag,'
"$CUFRAG" replay "$TRACES/seeddemo.default.cft" "$TRACES/mempool.default.cft" --no-host --json - |
	grep -E '"(trace|peak_reserved_bytes)":'
