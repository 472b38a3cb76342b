# a device whose addresses only grow: ties between blocks of one size go the other way, and that is shown
"$CUFRAG" verify "$TRACES/leak.frames.cft" --device null
"$CUFRAG" verify "$TRACES/leak.frames.cft" --device null --json - | grep -E '"(identical|difference_cause|verdict)"'
# other settings are another matter
"$CUFRAG" verify "$TRACES/gnn.default.cft" --device null --conf max_split_size_mb:128
