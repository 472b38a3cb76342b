"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --margin lots
