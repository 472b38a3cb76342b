# a policy of one's own in a shared object
# needs: cc
. "$DATA/made.sh"
policy mine.so
data=$DATA/seeddemo.pickle.xz
"$CUFRAG" replay "$data" --policy ./mine.so:round=1M --json out.json > /dev/null
grep -E '"(policy|params|completed|peak_allocated_bytes)"' out.json | sed 's/^ *//'
"$CUFRAG" replay "$data" --policy ./mine.so:rond=1M
policy old.so -DWRONG_ABI
"$CUFRAG" replay "$data" --policy ./old.so
: > none.c && library none.so none.c
"$CUFRAG" replay "$data" --policy ./none.so; echo "exit $?"
# in an adaptor
for bytes in 300M 500M; do
	"$CUFRAG" replay "$data" --policy limit:bytes=$bytes/./mine.so --fail-on-oom > /dev/null 2>&1
	echo "$bytes: $?"
done
# the example of the guide, by the line that its head names: what was freed at a higher address waits, no promise is broken
line=$(sed -n 's/^ \*\tgcc \(.*\) -o mine.so .*/\1/p' "$ROOT/docs/external-policy/mine.c")
(cd "$ROOT" && "$cc" $line -Wall -Wextra -Werror -o "$OLDPWD/guide.so" docs/external-policy/mine.c) || exit
printf 'alloc,1,1\nalloc,2,4097\nfree,2\nalloc,3,3000\n' > few.csv
"$CUFRAG" replay few.csv --policy ./guide.so:segment=4K --json - | grep -E '"(peak_allocated_bytes|driver_calls_count)"' | sed 's/^ *//'
for trace in leak.frames streams.default; do
	"$CUFRAG" replay "$TRACES/$trace.cft" --policy check:every=1/./guide.so:segment=1M --json - | grep '"completed"'
done
"$CUFRAG" replay few.csv --policy ./guide.so:segment=5000; echo "exit $?"
# Robson's program, written against first fit: a word of 256 KiB less than his bound does not suffice, the bound does
"$CUFRAG" gen robson --json bounds.json -o robson.cft > /dev/null
bound=$(sed -n 's/.*"online_bound_bytes": \([0-9]*\),/\1/p' bounds.json)
for bytes in $((bound - 262144)) $bound; do
	"$CUFRAG" replay robson.cft --policy ./guide.so:segment=$bytes --limit $bytes --json - | grep '"completed"'
done
