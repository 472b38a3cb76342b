# log: a file for each device
"$CUFRAG" replay "$TRACES/modelpar.default.cft" --policy log:file=run.csv/native --no-host > out || exit
ls *.csv
for f in run.csv run.1.csv; do "$CUFRAG" info $f | grep -E 'allocs'; done
mkdir a.b
"$CUFRAG" replay "$TRACES/modelpar.default.cft" --policy log:file=a.b/run/native --no-host > out || exit
ls a.b
