"$CUFRAG" import "$ROOT/tests/cli/data/seeddemo.pickle.xz"
