# the smallest card serves everything, also what was refused when recorded; with 2 MiB less something is refused
min=$("$CUFRAG" fit "$TRACES/oomcap.default.cft" --policies recorded --json - | sed -n 's/.*"min_capacity_bytes": \([0-9]*\).*/\1/p' | head -1)
for less in 0 2097152; do
	"$CUFRAG" replay "$TRACES/oomcap.default.cft" --policy recorded --capacity $((min - less)) --context 552402944 --limit 1.0 --fail-on-oom --json r.json > /dev/null
	echo "exit $?: $(grep -oE '"ooms_count": [0-9]+' r.json)"
done
