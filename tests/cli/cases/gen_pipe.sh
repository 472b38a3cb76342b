"$CUFRAG" gen repeat "$TRACES/modelpar.default.cft" --steps 3..5 --events 100k -o - > a.cft
"$CUFRAG" gen repeat - --steps 3..5 --events 100k -o b.cft < "$TRACES/modelpar.default.cft" | sed 's/[0-9.]* bytes/N bytes/g'
cmp a.cft b.cft && "$CUFRAG" info - < a.cft | grep events
