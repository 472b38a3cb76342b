# Ctrl-C: the settings that were tried are ranked and written, and their number is said
# needs: cc
"$cc" -std=gnu17 -O1 -shared -fPIC -I"$ROOT/src/include" -o stop.so "$ROOT/tests/cli/data/interrupt.c" || exit
"$CUFRAG" tune "$TRACES/gnn.default.cft" --space ./stop.so --threads 1 --json tune.json --csv tune.csv > out
status=$?
grep -c 'driver time' out
grep -E '^  *"(complete|tried_count|space_count)"' tune.json | sed 's/^ *//'
cut -d , -f 3 tune.csv | sort
exit $status
