# one of two is missing: nothing is written
"$CUFRAG" compare "$ROOT/tests/cli/data/seeddemo.pickle.xz" no-such-file --policy pytorch --out results --json out.json --csv out.csv
status=$?
ls
exit $status
