# a search that is ended at any moment, also by SIGKILL, goes on with the same command, and its answer is that of one that was not ended
cat > slow << 'END'
sleep 0.05
[ "$2" != "$late" ] || sleep 0.4
printf 'alloc,1,%s\nfree,1\n' $((1073741824 * $1 * $2)) > "$CUFRAG_RECORD/1.pickle"
END
layout() { exec "$CUFRAG" layout --gpu h100,h200 --policies pytorch --jobs 2 --vary '{mb}=1..16*2' --vary '{b}=1,5,9' --keep "$1" --shard all --csv "$2" -- sh slow '{mb}' '{b}' > /dev/null 2> err; }
# which layouts run does not depend on how long each takes either
(late=1 layout whole whole.csv); echo "exit $?"
for signal in KILL KILL KILL KILL INT TERM; do
	(layout kept part.csv) & pid=$!
	after=$(awk -v n=$RANDOM 'BEGIN { printf "%.3f", n / 32768 }')
	sleep "$after"
	kill -$signal $pid 2> /dev/null
	wait $pid 2> /dev/null
	[ -d kept ] || continue # it was killed before it began
	find kept -name '*.cft' | while read -r f; do "$CUFRAG" info "$f" > info 2>&1 || { echo "after $after s: $f"; cat info; }; done
done
(layout kept last.csv); echo "exit $?"
cmp whole.csv last.csv && echo "the same answer"
