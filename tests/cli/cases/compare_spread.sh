# Two devices of one recording: worst, median, least, imbalance. Several programs: a matrix.
all() { "$CUFRAG" compare --no-host --policies 'pytorch; buddy' --optimum bound "$@"; }
all "$TRACES/modelpar.default.cft" | sed -n '/together/,$p'
all "$TRACES/modelpar.default.cft" "$TRACES/leak.frames.cft" --json out.json | sed -n '/together/,$p'
grep -A 40 '"spread"' out.json | grep -E '"(policy|units_count|worst_bytes|median_bytes|least_bytes|spread_bytes|worst_trace|worst_device_ordinal)"' | sed 's/^ *//'
all "$TRACES/leak.frames.cft" | grep -c together || true
mkdir a b && cp "$TRACES/seeddemo.default.cft" a/run.cft && cp "$TRACES/leak.frames.cft" b/run.cft
all a/run.cft b/run.cft | sed -n '/together/,$p'
# a column for each of 19 policies; the chart is by the recorded peak
all a/run.cft b/run.cft --policies "buddy;pytorch$(printf ';pytorch:max_split_size_mb:%d' $(seq 20 36))" --formats svg --out out > said
head -n 1 out/programs.csv | tr , '\n' | wc -l
grep -o '[a-z]* needs [^"]*geometric mean[^"]*' out/results.json
