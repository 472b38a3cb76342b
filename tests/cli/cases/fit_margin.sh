# the smallest capacity does not depend on what cards are to keep free; cards by any spelling; a limit that nothing helps against
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --margin 10% --gpu 'RTX 4090' --csv - | cut -d , -f 1-7
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --margin 0 --gpu 'RTX 4090' --csv - | cut -d , -f 1-7
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --limit 100M | grep '^never'
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --limit 100M > /dev/null; echo "exit $?"
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --margin 95%
