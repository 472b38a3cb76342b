# a log of one's own; what it does not say is said
printf 'alloc,7,1048576\nalloc,8,512\nfree,7\nfree,9,4096\n' > own.csv
"$CUFRAG" info own.csv | head -n 14
"$CUFRAG" info own.csv --json - | grep -E '"(format|not_recorded)"'
# what .cft keeps of it
"$CUFRAG" import own.csv -o own.cft > imported.txt && "$CUFRAG" info own.cft | sed -n 2,3p
"$CUFRAG" verify own.cft
echo "exit $?"
# the adaptor log writes what the reader of RMM's logs takes: the same requests again
"$CUFRAG" replay "$TRACES/gnn.default.cft" --policy 'log:file=rmm.csv/native' > replay.txt
"$CUFRAG" info "$TRACES/gnn.default.cft" | grep -E 'events|peak'
"$CUFRAG" info rmm.csv | grep -E 'format|not in it|events|streams|peak'
# hostile
printf 'alloc,7,100\nalloc,7,100\n' > twice.csv
"$CUFRAG" info twice.csv
echo "exit $?"
