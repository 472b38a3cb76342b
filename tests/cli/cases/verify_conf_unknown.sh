"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --conf max_split_size:128
