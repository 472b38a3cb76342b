# A report of a trace that is never in memory: without what needs the events, with all the rest.
command -v gnuplot > /dev/null || { echo 'no gnuplot' >&2; exit 77; }
"$CUFRAG" compare "$TRACES/leak.frames.cft" --stream --policies 'pytorch; buddy' --formats svg --out results > /dev/null || exit
[ -s results/report.html ] && ls results | grep -E '^(memory|peak|loss|sizes|addresses)\.svg'
