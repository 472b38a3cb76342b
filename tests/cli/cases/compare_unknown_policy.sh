"$CUFRAG" compare "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policies 'pytorch;nativ' --out results
status=$?
ls
exit $status
