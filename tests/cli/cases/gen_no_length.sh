"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" -o x.cft
status=$?
ls
exit $status
