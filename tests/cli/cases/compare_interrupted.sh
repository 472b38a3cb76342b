# Ctrl-C: what was finished is written, complete; what is missing is named. The signal comes
# from a policy, at its tenth allocation, so the outcome is always the same.
# needs: cc gnuplot
. "$DATA/made.sh"
policy interrupt.so
export INTERRUPT_AT=10
ln -s "$TRACES/leak.frames.cft" "$TRACES/gnn.default.cft" .
"$CUFRAG" compare leak.frames.cft gnn.default.cft --threads 1 --no-host --formats svg \
	--optimum bound --policies 'pytorch; ./interrupt.so; buddy' --json out.json --csv out.csv --out results > table
status=$?
grep -E '^(pytorch|./interrupt|buddy|interrupted)' table | sed 's/  .*//'
cut -d, -f 1-3 out.csv
grep '"missing"' out.json | sed 's/^ *//'
ls results
grep -o 'missing:[^<]*' results/report.html results/leak.frames/report.html
ls -A results results/leak.frames | grep -c '^\.cufrag'
[ -s results/leak.frames/memory.svg ] && grep -c '^' results/leak.frames/results.csv
exit $status
