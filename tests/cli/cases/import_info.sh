"$CUFRAG" import "$ROOT/tests/cli/data/seeddemo.pickle.xz" -o seeddemo.cft | sed 's/[0-9.]* bytes/N bytes/g'
ls
"$CUFRAG" info seeddemo.cft
