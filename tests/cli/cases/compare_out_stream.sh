# A report of a trace that is never in memory: without what needs the events, with all the rest.
# needs: gnuplot
"$CUFRAG" compare "$TRACES/leak.frames.cft" --stream --policies 'pytorch; buddy' --formats svg --out results > /dev/null || exit
[ -s results/report.html ] && ls results | grep -E '^(memory|peak|loss|sizes|addresses)\.svg'
