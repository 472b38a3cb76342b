# cut off or changed anywhere: no output, and the message of the reader
size=$(wc -c < "$TRACES/streams.default.cft")
for n in 0 8 100 5000 20000 $((size / 2)) $((size - 100)) $((size - 1)); do
	head -c $n "$TRACES/streams.default.cft" > cut
	for threads in 1 2; do
		"$CUFRAG" replay cut --policy pytorch --stream --threads $threads > out 2> message
		[ $? -eq 3 ] || [ $n -lt 100 ] || echo "cut at $n: exit status"
		[ -s out ] && echo "cut at $n: output"
	done
done
for at in 300 3000 30000 $((size - 2000)) $((size - 30)); do
	cp "$TRACES/streams.default.cft" changed
	printf '\377\0\377' | dd of=changed bs=1 seek=$at conv=notrunc 2> dd
	"$CUFRAG" replay changed --policy pytorch --stream=never > out 2> whole; first=$?
	"$CUFRAG" replay changed --policy pytorch --stream > out 2> message; second=$?
	[ $first$second = 33 ] && cmp whole message || echo "changed at $at: $first $second"
	[ -s out ] && echo "changed at $at: output"
	# the second half of an out-of-memory replay is looked at, too
	"$CUFRAG" replay changed --policy pytorch --stream --capacity 200M --context 0 > out 2> message
	[ $? -eq 3 ] || echo "changed at $at, out of memory: exit status"
done
echo done
