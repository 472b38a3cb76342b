echo mine > results
"$CUFRAG" compare "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policies pytorch --out results > /dev/null
status=$?
cat results
exit $status
