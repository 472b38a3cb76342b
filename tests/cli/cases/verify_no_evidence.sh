"$CUFRAG" import --no-evidence "$ROOT/tests/cli/data/seeddemo.pickle.xz" -o plain.cft > /dev/null && "$CUFRAG" verify plain.cft
