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
# cut off: by a line that makes no sense without its end, of any log in lines
for cut in 'free,8' 'fr' 'alloc,9,x'; do
	printf 'alloc,7,1048576\nalloc,8,512\n%s' "$cut" > cut.csv
	"$CUFRAG" info cut.csv | grep -E 'not in it|^  events '
done
printf '{"action":"alloc","id":7,"size":512}\n{"action":"fr' > cut.jsonl
"$CUFRAG" info cut.jsonl | grep -E 'not in it|^  events '
printf 'Thread,Time,Action,Pointer,Size,Stream\n7,10:00:00.1,allocate,0x7f00,512,0\n7,10:00:00.0005' > cut.rmm
"$CUFRAG" info cut.rmm | grep -E 'not in it|^  events '
