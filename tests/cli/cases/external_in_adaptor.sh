# needs: cc
"$CUFRAG" list policies limit > /dev/null 2>&1 || { echo "no policy 'limit' yet" >&2; exit 77; }
"$cc" -std=c17 -O1 -shared -fPIC -I"$ROOT/src/include" -o mine.so "$ROOT/tests/cli/data/external.c" || exit
data=$ROOT/tests/cli/data/seeddemo.pickle.xz
for bytes in 300M 500M; do
	"$CUFRAG" replay "$data" --policy limit:bytes=$bytes/./mine.so --fail-on-oom > /dev/null 2>&1
	echo "$bytes: $?"
done
