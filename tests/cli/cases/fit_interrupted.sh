# Ctrl-C: what finished is complete, what is missing is said
# needs: cc
. "$DATA/made.sh"
policy stop.so
"$CUFRAG" fit "$TRACES/gnn.default.cft" --policies 'native;./stop.so:round=2K;pytorch' --threads 1 \
	--json fit.json --csv fit.csv > out
status=$?
grep -c interrupted out
grep -E '^  *"(complete|min_capacity_bytes|params)"' fit.json | sed 's/^ *//'
cut -d , -f 2- fit.csv
exit $status
