"$CUFRAG" diff "$TRACES/gnn.default.cft" "$TRACES/gnn.expandable.cft" --fail-on-growth 5%
"$CUFRAG" replay "$TRACES/gnn.default.cft" --no-host --json former.json > /dev/null
"$CUFRAG" diff "$TRACES/gnn.expandable.cft" former.json --fail-on-growth 5% --json - | grep -E 'growth|"verdict"'
