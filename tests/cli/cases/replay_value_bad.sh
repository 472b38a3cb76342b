"$CUFRAG" replay "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policy 'buddy:min-block=lots'
