"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --conf expandable_segments:True
