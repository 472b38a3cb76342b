# recordings at batch 2, 4 and 8: those at 16 and 32 are predicted to the byte; at 80 the program makes other requests
D=$DATA/scale
"$CUFRAG" scale --at 8,2,4 "$D/batch8.cft" "$D/batch2.cft" "$D/batch4.cft" --to 3,16,32 --gpu l4 --json s.json 2> notes | tail -n +2
grep -c 'is an estimate' notes
policies='recorded;pytorch:expandable_segments:True'
for n in 16 32; do
	"$CUFRAG" compare "$D/batch$n.cft" --policies "$policies" --json c.json > /dev/null 2>&1
	# the same numbers from the recording itself
	python3 - "$n" << 'END'
import json, sys
n = int(sys.argv[1])
said = {r["policy"]: (r["peak_requested_bytes"], r["peak_reserved_bytes"]) for r in json.load(open("s.json"))["results"] if r["value"] == n}
is_so = [(r["peak_requested_bytes"], r["peak_reserved_bytes"]) for r in json.load(open("c.json"))["results"]]
print(n, "to the byte" if sorted(said.values()) == sorted(is_so) and len(is_so) == 2 else (said, is_so))
END
done
"$CUFRAG" scale --at 2,4,8 "$D/batch2.cft" "$D/batch4.cft" "$D/batch8.cft" --to 32 -o b32.cft > /dev/null 2>&1
"$CUFRAG" diff b32.cft "$D/batch32.cft" 2> /dev/null | grep "^answer"
"$CUFRAG" info b32.cft | grep scaled
"$CUFRAG" scale --at 8,80 "$D/batch8.cft" "$D/batch80.cft" --to 32 --csv - 2> /dev/null
"$CUFRAG" scale --at 2,4,80 "$D/batch2.cft" "$D/batch4.cft" "$D/batch80.cft" --policy pytorch --to 160 2> /dev/null | tail -n +2
# without --to: doubled until it is too much, and the greatest that completes
"$CUFRAG" scale --at 2,4,8 "$D/batch2.cft" "$D/batch4.cft" "$D/batch8.cft" --limit 60M --policy pytorch --csv - 2> /dev/null | cut -d, -f1,4
"$CUFRAG" scale --at 2,4,8 "$D/batch2.cft" "$D/batch4.cft" "$D/batch8.cft" --limit 27M --policy pytorch --csv - 2> /dev/null | cut -d, -f1,4
# what does not go together
"$CUFRAG" scale --at 2 "$D/batch2.cft" "$D/batch4.cft"
"$CUFRAG" scale --at 2,2 "$D/batch2.cft" "$D/batch4.cft" 2>&1 | grep -v estimate
"$CUFRAG" scale --at 2,4 "$D/batch2.cft" "$TRACES/gnn.default.cft" 2>&1 | grep -v estimate
"$CUFRAG" scale --at 0,4 "$D/batch2.cft" "$D/batch4.cft"
"$CUFRAG" scale --vary '{b}=1,2' "$D/batch2.cft" "$D/batch4.cft"
"$CUFRAG" scale --no-gpu --vary 'b=1,2' -- true
printf 'refused,1,512\n' > died.csv
"$CUFRAG" scale --at 2,4 died.csv "$D/batch4.cft" 2>&1 | grep -v estimate
# 714 requests of 5,000 steps come only from some value on: more than one stretch of the match
for n in 3 5 12; do awk -v n=$n 'BEGIN { for (s = 0; s < 5000; s++) for (k = 0; k < 2; k++) {
	print k ? "free,1" : "alloc,1," 700 * n; if (n > 9 && s % 7 == 3) print k ? "free,2" : "alloc,2," 64 * n } }' > $n.csv; done
"$CUFRAG" scale --at 3,5,12 3.csv 5.csv 12.csv --policy native --to 24 2> /dev/null | sed -n '/laws\|law\|sizes:\|only in/p; / 24 /p'
