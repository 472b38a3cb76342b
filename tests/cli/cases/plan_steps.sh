# a plan made from the first half of the steps, followed over all of them
"$CUFRAG" plan "$TRACES/gnn.default.cft" --time 1 -o gnn.plan | grep -E '^(load|optimal)'
"$CUFRAG" replay --counters "$TRACES/gnn.default.cft" --policy planned:plan=gnn.plan | grep -E '^result|planned.place_taken'
