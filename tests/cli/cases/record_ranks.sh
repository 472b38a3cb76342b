# each rank is a run of its own, and all of them are one trace
cat > program << 'END'
echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK, $CUFRAG_PRETEND" | sed 's/;name.*//'
cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/$RANK.pickle"
echo "{\"rank\": $RANK, \"world\": $WORLD_SIZE}" > "$CUFRAG_RECORD/$RANK.json"
END
"$CUFRAG" record --no-gpu --ranks 7,0-1 --world 64 -o run.cft -- sh program
"$CUFRAG" record --no-gpu --ranks 8 --world 8 -o no.cft -- sh program || echo $?
"$CUFRAG" record --no-gpu --ranks 2-1 -o no.cft -- sh program || echo $?
ls
