# Two devices of one recording: worst, median, least, imbalance. Two programs: a matrix.
compare() { "$CUFRAG" compare --no-host --policies 'pytorch; buddy' --optimum bound "$@" | sed -n '/together/,$p' | grep -v '^to use'; }
compare "$TRACES/modelpar.default.cft"
compare "$TRACES/modelpar.default.cft" "$TRACES/leak.frames.cft" --json out.json
grep -A 40 '"spread"' out.json | grep -E '"(policy|units_count|worst_bytes|median_bytes|least_bytes|spread_bytes|worst_trace|worst_device_ordinal)"' | sed 's/^ *//'
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --policies 'pytorch; buddy' --optimum bound | grep -c together || true
# programs of one name are told apart by their folders
mkdir a b && cp "$TRACES/seeddemo.default.cft" a/run.cft && cp "$TRACES/leak.frames.cft" b/run.cft && compare a/run.cft b/run.cft
