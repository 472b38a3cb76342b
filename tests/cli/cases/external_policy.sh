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
