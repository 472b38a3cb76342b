"$CUFRAG" import "$TRACES/modelpar.default.cft" -o x.csv
status=$?
ls
exit $status
