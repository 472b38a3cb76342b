# needs: cc
"$CUFRAG" list policies limit > /dev/null 2>&1 || { echo "no policy 'limit' yet" >&2; exit 77; }
. "$DATA/made.sh"
policy mine.so
for bytes in 300M 500M; do
	"$CUFRAG" replay "$DATA/seeddemo.pickle.xz" --policy limit:bytes=$bytes/./mine.so --fail-on-oom > /dev/null 2>&1
	echo "$bytes: $?"
done
