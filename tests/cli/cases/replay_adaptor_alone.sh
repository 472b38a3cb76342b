"$CUFRAG" list policies limit > /dev/null 2>&1 || { echo "no policy 'limit' yet" >&2; exit 77; }
"$CUFRAG" replay "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policy limit
