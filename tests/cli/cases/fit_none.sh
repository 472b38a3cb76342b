# no known card has room beside the margin
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy pytorch --margin 1T --json fit.json > out
status=$?
grep -c ' tight ' out
grep -A 1 '"fits"' fit.json
exit $status
