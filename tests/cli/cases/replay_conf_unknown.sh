"$CUFRAG" replay "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policy 'pytorch:max_split_size:128'
