"$CUFRAG" import "$ROOT/tests/cli/data/seeddemo.pickle.xz" --device 7 -o out.cft
status=$?
ls
exit $status
