# a limit that the file does not name is found; what was refused is said; fit serves it all
"$CUFRAG" compare "$TRACES/oomcap.default.cft" --policies 'recorded;pytorch:expandable_segments:True' --optimum off |
	grep -E '^# recording|refused'
"$CUFRAG" compare "$TRACES/oomcap.default.cft" --policies recorded --json - |
	grep -E '"(is_recorded|limit_source|identical|refused_count|ooms_count|refused_again_count|recorded_peak_bytes)"' | sed 's/^ *//'
"$CUFRAG" fit "$TRACES/oomcap.default.cft" --policies recorded 2>&1 | grep refuse
"$CUFRAG" fit "$TRACES/gnn.default.cft" --policies recorded --limit 0.5 2>&1 | grep '^pytorch' | cut -c 1-22
