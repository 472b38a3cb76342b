# Two devices of one recording, and another one: worst, median, least, imbalance.
"$CUFRAG" compare "$TRACES/modelpar.default.cft" "$TRACES/leak.frames.cft" --no-host --policies 'pytorch; buddy' \
	--optimum bound --json out.json | sed -n '/together/,$p' | grep -v '^to use'
grep -A 40 '"spread"' out.json | grep -E '"(policy|units_count|worst_bytes|median_bytes|least_bytes|spread_bytes|worst_trace|worst_device_ordinal)"' | sed 's/^ *//'
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --policies 'pytorch; buddy' --optimum bound | grep -c together || true
