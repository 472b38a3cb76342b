"$CUFRAG" import "$ROOT/tests/cli/data/seeddemo.pickle.xz" -o no/such/folder/out.cft
status=$?
ls
exit $status
