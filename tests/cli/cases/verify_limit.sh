# a limit that the recording did not have
"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --limit 300M
