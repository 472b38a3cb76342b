# The page stands alone; hostile names of call sites reach neither it nor a terminal raw.
# needs: gnuplot
"$CUFRAG" explain "$TRACES/leak.frames.cft" --out page > /dev/null && ls page
grep -c '<svg' page/explain.html
grep -o 'most live[^<]*' page/explain-live.svg
"$CUFRAG" diff "$TRACES/gnn.default.cft" "$TRACES/gnn.expandable.cft" --out page > /dev/null && ls page | grep diff
