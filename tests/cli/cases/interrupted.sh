# Ctrl-C, TERM and HUP end a run: what finished is complete, what is missing is said. The signal
# comes from a policy, at its tenth allocation or as it begins, so the outcome is always the same.
# needs: cc gnuplot
. "$DATA/made.sh"
policy stop.so
ln -s "$TRACES/leak.frames.cft" "$TRACES/gnn.default.cft" .
INTERRUPT_AT=10 "$CUFRAG" compare leak.frames.cft gnn.default.cft --threads 1 --no-host --formats svg \
	--optimum bound --policies 'pytorch; ./stop.so; buddy' --json out.json --csv out.csv --out results > table
echo "exit $?"
grep -E '^(pytorch|./stop|buddy|interrupted)' table | sed 's/  .*//'
cut -d, -f 1-3 out.csv
grep '"missing"' out.json | sed 's/^ *//'
ls results
grep -o 'missing:[^<]*' results/report.html results/leak.frames/report.html
ls -A results results/leak.frames | grep -c '^\.cufrag'
[ -s results/leak.frames/memory.svg ] && grep -c '^' results/leak.frames/results.csv
for signal in 15 1; do
	INTERRUPT_AT=10 INTERRUPT_WITH=$signal "$CUFRAG" compare leak.frames.cft --threads 1 --no-host --optimum bound \
		--policies 'pytorch; ./stop.so; buddy' --csv again.csv > table 2> said
	echo "signal $signal: exit $?"
	cat said
	cut -d, -f 1-3 again.csv
done
ls -A
"$CUFRAG" fit gnn.default.cft --policies 'native;./stop.so:round=2K;pytorch' --threads 1 --json fit.json --csv fit.csv > out
echo "exit $?, $(grep -c interrupted out)"
grep -E '^  *"(complete|min_capacity_bytes|params)"' fit.json | sed 's/^ *//'
cut -d , -f 2- fit.csv
# the settings that were tried are ranked and written, and their number is said
"$CUFRAG" tune gnn.default.cft --space ./stop.so --threads 1 --json tune.json --csv tune.csv > out
echo "exit $?, $(grep -c 'driver time' out)"
grep -E '^  *"(complete|tried_count|space_count)"' tune.json | sed 's/^ *//'
cut -d , -f 3 tune.csv | sort
