# what export writes as CSV is read again: the same requests at the same times, so the same peaks
for t in gnn.default cudagraph.default streams.default; do
	"$CUFRAG" export "$TRACES/$t.cft" --to csv > back.csv
	for policy in pytorch vmm; do
		for f in "$TRACES/$t.cft" back.csv; do
			"$CUFRAG" replay "$f" --policy $policy --json - 2> /dev/null |
				python3 -c 'import json, sys; print([r["peak_reserved_bytes"] for r in json.load(sys.stdin)["results"]])'
		done | uniq -c | tr -s ' '
	done
done
printf 'action,id,size,time_s\nalloc,1,2,1x\n' > bad.csv
"$CUFRAG" info bad.csv; echo "exit $?"
