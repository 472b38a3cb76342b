"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --steps 100..200 --times 2 -o x.cft
status=$?
ls
exit $status
