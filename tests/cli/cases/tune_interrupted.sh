# Ctrl-C: the settings that were tried are ranked and written, and their number is said
# needs: cc
. "$DATA/made.sh"
policy stop.so
"$CUFRAG" tune "$TRACES/gnn.default.cft" --space ./stop.so --threads 1 --json tune.json --csv tune.csv > out
status=$?
grep -c 'driver time' out
grep -E '^  *"(complete|tried_count|space_count)"' tune.json | sed 's/^ *//'
cut -d , -f 3 tune.csv | sort
exit $status
