# cut at many places: always exit status 3, one line, nothing written
xz -dc "$DATA/seeddemo.pickle.xz" > whole
size=$(wc -c < whole)
n=0
while [ $n -lt "$size" ]; do
	head -c $n whole > cut
	"$CUFRAG" import cut -o out.cft 2> message
	status=$?
	[ $status -eq 3 ] || echo "cut at $n: exit status $status"
	[ "$(wc -l < message)" -eq 1 ] || echo "cut at $n: $(cat message)"
	[ -e out.cft ] && echo "cut at $n: something was written"
	n=$((n + 97))
done
head -c 1000 whole > cut
"$CUFRAG" verify cut
