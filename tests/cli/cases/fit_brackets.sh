# the answer completes, 2 MiB less does not; so the smallest card serves everything, also what was refused when recorded
least() { "$CUFRAG" fit "$1" --policies "$2" --json - | sed -n 's/^ *"min_capacity_bytes": \([0-9]*\),$/\1/p' | head -n 1; }
for policy in pytorch pytorch:expandable_segments:True pytorch:max_split_size_mb:128; do
	min=$(least "$TRACES/gnn.default.cft" $policy)
	for capacity in "$min" $((min - 2097152)); do
		"$CUFRAG" replay "$TRACES/gnn.default.cft" --policy "$policy" --capacity "$capacity" --json - |
			grep -m 1 '"completed"'
	done
done
min=$(least "$TRACES/oomcap.default.cft" recorded)
for less in 0 2097152; do
	"$CUFRAG" replay "$TRACES/oomcap.default.cft" --policy recorded --capacity $((min - less)) --context 552402944 --limit 1.0 \
		--fail-on-oom --json r.json > /dev/null
	echo "exit $?: $(grep -oE '"ooms_count": [0-9]+' r.json)"
done
