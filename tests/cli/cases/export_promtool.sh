# Prometheus's own tool takes the series (Debian: package prometheus).
command -v promtool > /dev/null || { echo "no promtool" >&2; exit 77; }
"$CUFRAG" export "$TRACES/gnn.default.cft" --to openmetrics -o g.om
promtool tsdb create-blocks-from openmetrics g.om blocks > out 2>&1 && echo taken
