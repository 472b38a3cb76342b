"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz"
