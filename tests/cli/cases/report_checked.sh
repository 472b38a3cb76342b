# the report says how far the recording was reproduced, with the counts that verify has
# needs: gnuplot
for conf in '' --conf=max_split_size_mb:64; do
	"$CUFRAG" compare "$TRACES/gnn.default.cft" --policies native --optimum off $conf --formats svg --out report > table 2> says || cat says
	sed -n '/<dt>Checked</{n; s/<[^>]*>//gp}' report/report.html
	rm -rf report
done
"$CUFRAG" verify "$TRACES/gnn.default.cft" | tail -2
