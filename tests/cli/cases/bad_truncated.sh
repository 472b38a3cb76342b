# cut at many places: always exit status 3, one line, nothing written, and of a .cft no output but
# info's (at all places: tests/unit/trace/histories.py)
"$CUFRAG" import "$DATA/seeddemo.pickle.xz" -o whole.cft > /dev/null && xz -dc "$DATA/seeddemo.pickle.xz" > whole.pickle || exit
try() {
	"$CUFRAG" "$@" > out 2> message
	status=$?
	[ $status -eq 3 ] || echo "$*, cut at $n: exit status $status"
	[ "$(wc -l < message)" -eq 1 ] || echo "$*, cut at $n: $(cat message)"
	[ ! -e out.cft ] || echo "cut at $n: something was written"
}
for n in $(seq 0 97 $(($(wc -c < whole.pickle) - 1))); do
	head -c "$n" whole.pickle > cut
	try import cut -o out.cft
done
for n in $(seq 0 61 $(($(wc -c < whole.cft) - 1))); do
	head -c "$n" whole.cft > cut
	try info cut
	for command in verify "replay --policy pytorch"; do
		try $command cut
		[ ! -s out ] || echo "$command, cut at $n: output"
	done
done
head -c 1000 whole.pickle > cut
"$CUFRAG" verify cut
