# several traces: the worst decides
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" "$TRACES/gnn.default.cft" --policy native | grep ' to '
