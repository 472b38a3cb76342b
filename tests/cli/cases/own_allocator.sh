# a log of another library is answered under its allocator, with what that library has
{
	echo Thread,Time,Action,Pointer,Size,Stream
	for i in $(seq 1000 316 10164); do # MiB
		printf '7,14:05:00.%06d,allocate,0x%x00000,314572800,0\n' "$i" "$i"
		printf '7,14:05:00.%06d,allocate,0x%x00000,16777216,0\n' "$i" $((i + 300))
	done
	for i in $(seq 1000 316 10164); do
		printf '7,14:05:01.%06d,free,0x%x00000,314572800,0\n' "$i" "$i"
	done
	echo '7,14:05:02.0,allocate failure,(nil),346030080,0'
} > rmm.csv
for log in rmm.csv "$ROOT/tests/conformance/samples/cupy" "$ROOT/tests/conformance/samples/bfc" \
	"$ROOT/tests/conformance/samples/umpire" "$ROOT/tests/conformance/samples/nsys"; do
	for command in summary explain diagnose tune fit compare; do
		"$CUFRAG" $command "$log" > out.txt 2>&1 < /dev/null
		printf '%s %s: ' "${log##*/}" $command
		grep -iE 'pytorch|torch\.|advise' out.txt | head -n 3
		grep -E '^answer:|^verdict:' out.txt | head -n 1
	done
done
"$CUFRAG" diagnose -q rmm.csv | grep -c '^leak' # what was given back is none
"$CUFRAG" advise -q rmm.csv | grep -E '^(# unchanged|answer|  async)'
"$CUFRAG" explain rmm.csv | sed -n '/would have served/,/^$/p'
# PyTorch's own: where its defaults serve a request there is nothing to export
"$CUFRAG" explain "$TRACES/oomcap.default.cft" | grep -c 'ALLOC_CONF=$'
true
