# any one byte changed is noticed
"$CUFRAG" import "$ROOT/tests/cli/data/seeddemo.pickle.xz" -o whole.cft > /dev/null || exit
size=$(wc -c < whole.cft)
n=0
while [ $n -lt "$size" ]; do
	byte=$(od -An -tu1 -j $n -N 1 whole.cft)
	{ head -c $n whole.cft; printf "\\$(printf %o $((byte ^ 32)))"; tail -c +$((n + 2)) whole.cft; } > changed
	"$CUFRAG" verify changed > out 2> message
	status=$?
	[ $status -eq 3 ] || echo "byte $n: exit status $status"
	[ "$(wc -l < message)" -eq 1 ] || echo "byte $n: $(cat message)"
	n=$((n + 7))
done
true
