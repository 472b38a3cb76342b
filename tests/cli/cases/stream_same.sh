# whatever is streamed, the results are those of the trace in memory; with one thread and with two,
# in turn (every night: with both)
threads=1
same() {
	name=$1
	shift
	"$CUFRAG" "$@" --stream=never --json memory > memory.out 2> memory.err
	status=$?
	threads=$((3 - threads))
	for n in $([ -n "$FRAG_TEST_NIGHTLY" ] && echo 1 2 || echo $threads); do
		"$CUFRAG" "$@" --stream --threads $n --json streamed > streamed.out 2> streamed.err
		[ $? -eq $status ] || echo "$name: exit status"
		sed -i '/"command_line"/d' memory streamed
		cmp memory streamed || echo "$name: JSON"
		cmp memory.out streamed.out || echo "$name: text"
		cmp memory.err streamed.err || echo "$name: messages"
	done
}
for trace in "$TRACES"/*.cft "$ROOT/tests/golden/recorded/mempool.ring.cft" "$ROOT/tests/golden/recorded/gnn.expring.cft"; do
	name=$(basename "$trace")
	same "$name pytorch" replay "$trace" --policy pytorch --no-host
	same "$name expandable" replay "$trace" --policy pytorch:expandable_segments:True --no-host
done
# every policy that needs no plan of the trace, also those that walk the peak in a second pass
"$CUFRAG" compare "$TRACES/gnn.default.cft" --policies all --optimum bound --json all > out 2>&1 || cat out
policies=$(sed -n 's/^ *"policy": "\(.*\)",$/\1/p' all | grep -v '^planned' | sort -u | paste -sd ';')
[ "$(echo "$policies" | tr ';' '\n' | wc -l)" -gt 15 ] || echo "few policies: $policies"
same 'all policies' compare "$TRACES/gnn.default.cft" --policies "$policies" --optimum bound --no-host
same 'all policies, late' compare "$TRACES/gnn.late.cft" --policies "$policies" --optimum bound --no-host
same 'two devices' compare "$TRACES/modelpar.default.cft" --policies 'recorded;buddy;bfc;async' --optimum bound --no-host
# out of memory: ends early, or goes on
same 'stopped' replay "$TRACES/varlen.default.cft" --policy pytorch --capacity 12G --context 0 --no-host
same 'stopped, all' compare "$TRACES/gnn.default.cft" --policies "$policies" --capacity 6G --context 0 --optimum bound --no-host
same 'skipped' replay "$TRACES/varlen.default.cft" --policy buddy --capacity 12G --context 0 --on-oom=skip --no-host
same 'not possible' replay "$TRACES/gnn.default.cft" --policy limit --no-host
# what import makes of it may be compressed
if zstd -q "$TRACES/gnn.default.cft" -o gnn.default.cft.zst 2> /dev/null; then
	same 'compressed' replay gnn.default.cft.zst --policy pytorch --no-host
fi
echo done
