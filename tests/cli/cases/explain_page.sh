# The page stands alone; hostile names of call sites reach neither it nor a terminal raw.
command -v gnuplot > /dev/null || { echo "no gnuplot" >&2; exit 77; }
"$CUFRAG" explain "$TRACES/leak.frames.cft" --out page > /dev/null && ls page
grep -c '<svg' page/explain.html
"$CUFRAG" diff "$TRACES/gnn.default.cft" "$TRACES/gnn.expandable.cft" --out page > /dev/null && ls page | grep diff
