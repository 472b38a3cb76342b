"$CUFRAG" tune "$TRACES/seeddemo.default.cft" --objective money
