# The guard passes, fails where AFTER ended out of memory, cannot tell where BEFORE did or is not alike.
printf 'alloc,1,4294967296\nalloc,2,4294967296\nalloc,3,1073741824\nfree,3\nfree,2\nfree,1\n' > ok.csv
printf 'alloc,1,4294967296\nalloc,2,4294967296\nfree,2\nfree,1\n' > less.csv
printf 'alloc,1,4294967296\nrefused,4,8589934592\nfree,1\n' > died.csv
"$CUFRAG" replay --policy pytorch died.csv --json died.json > /dev/null 2>&1
for pair in 'less ok 5%' 'less ok 20%' 'less ok 100MiB' 'ok less 5%' 'ok ok 0%' 'ok died 200%' 'died ok 5%'; do
	set -- $pair
	"$CUFRAG" diff $1.csv $2.csv --policy pytorch --fail-on-growth $3 --brief > out 2> err; echo "$pair: exit $?"
	grep -E '^(what|answer: (pass|fail|neither))' out
done
"$CUFRAG" diff ok.csv died.json --policy pytorch --fail-on-growth 200% --brief | tail -n 1
"$CUFRAG" diff "$TRACES/gnn.default.cft" "$TRACES/modelpar.default.cft" --fail-on-growth 90% --brief | tail -n 2
"$CUFRAG" diff "$TRACES/gnn.default.cft" "$TRACES/leak.frames.cft" --brief | sed 1d
