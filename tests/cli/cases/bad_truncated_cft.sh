# cut at some places (tests/unit/trace/test_cft_damage.c: at all): always exit status 3, one line, no output
"$CUFRAG" import "$DATA/seeddemo.pickle.xz" -o whole.cft > /dev/null || exit
size=$(wc -c < whole.cft)
n=0
while [ $n -lt "$size" ]; do
	head -c $n whole.cft > cut
	for command in info verify "replay --policy pytorch"; do
		"$CUFRAG" $command cut > out 2> message
		status=$?
		[ $status -eq 3 ] || echo "$command, cut at $n: exit status $status"
		[ "$(wc -l < message)" -eq 1 ] || echo "$command, cut at $n: $(cat message)"
		[ -s out ] && [ "$command" != info ] && echo "$command, cut at $n: output"
	done
	n=$((n + 61))
done
true
