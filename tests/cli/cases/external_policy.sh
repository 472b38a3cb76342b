# a policy of one's own in a shared object
# needs: cc
"$cc" -std=c17 -O1 -shared -fPIC -I"$ROOT/src/include" -o mine.so "$ROOT/tests/cli/data/external.c" || exit
data=$ROOT/tests/cli/data/seeddemo.pickle.xz
"$CUFRAG" replay "$data" --policy ./mine.so:round=1M --json out.json > /dev/null
grep -E '"(policy|params|completed|peak_allocated_bytes)"' out.json | sed 's/^ *//'
"$CUFRAG" replay "$data" --policy ./mine.so:rond=1M
"$cc" -shared -fPIC -DWRONG_ABI -I"$ROOT/src/include" -o old.so "$ROOT/tests/cli/data/external.c" && "$CUFRAG" replay "$data" --policy ./old.so
"$cc" -shared -fPIC -x c -o none.so - < /dev/null && "$CUFRAG" replay "$data" --policy ./none.so
