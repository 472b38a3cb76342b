"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --times 4 -o long.cft | sed 's/[0-9.]* bytes/N bytes/g'
ls
"$CUFRAG" info long.cft | head -n 17
# the recorded peak is not passed, and the settings are still known
"$CUFRAG" replay long.cft --json - --no-host | grep -E '"(trace|policy|completed|peak_reserved_bytes)"'
"$CUFRAG" replay "$TRACES/gnn.default.cft" --json - --no-host | grep -E '"(peak_reserved_bytes)"'
