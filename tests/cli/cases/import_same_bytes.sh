data=$ROOT/tests/cli/data/seeddemo.pickle.xz
"$CUFRAG" import "$data" -o a.cft > /dev/null && "$CUFRAG" import "$data" -o b.cft > /dev/null && cmp a.cft b.cft
# from .cft to .cft: nothing is lost and nothing added
"$CUFRAG" import a.cft -o c.cft > /dev/null && "$CUFRAG" verify c.cft | tail -n 1
