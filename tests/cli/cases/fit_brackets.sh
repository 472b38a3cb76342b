# the answer completes, 2 MiB less does not
for policy in pytorch pytorch:expandable_segments:True pytorch:max_split_size_mb:128; do
	"$CUFRAG" fit "$TRACES/gnn.default.cft" --policy "$policy" --json - > fit.json || exit
	min=$(sed -n 's/^ *"min_capacity_bytes": \([0-9]*\),$/\1/p' fit.json | head -n 1)
	for capacity in "$min" $((min - 2097152)); do
		"$CUFRAG" replay "$TRACES/gnn.default.cft" --policy "$policy" --capacity "$capacity" --json - |
			grep -m 1 '"completed"'
	done
done
