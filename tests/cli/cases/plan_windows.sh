# a trace that marks no steps: windows; the placement can be written, and a search is the same again
"$CUFRAG" plan "$TRACES/streams.default.cft" --time 1 -o w.plan --json w.json > /dev/null || exit
grep -E '"(windows|steps_count|trained_count|period)"' w.json | sed 's/^ *//'
"$CUFRAG" replay "$TRACES/streams.default.cft" --policy planned:plan=w.plan | grep -E '^result'
printf 'id,lower,upper,size\n' > in.csv
awk 'BEGIN { for (i = 0; i < 60; i++) printf "%d,%d,%d,%d\n", i, i * 7 % 40, i * 7 % 40 + 3 + i % 9, 1 + i * i % 37 }' >> in.csv
for threads in 1 3; do
	"$CUFRAG" plan in.csv --nodes 20000 --time 1000 --seed 3 --threads $threads --placement p$threads.csv --csv c$threads.csv > /dev/null
done
cmp p1.csv p3.csv && cmp c1.csv c3.csv && head -n 1 p1.csv && wc -l < p1.csv
"$CUFRAG" plan in.csv --window 5x
