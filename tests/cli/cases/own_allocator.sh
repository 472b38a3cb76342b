# a log of another library is answered under its allocator, with what that library has
awk 'function at(n) { return sprintf("0x%x", n) }
	function line(what, p, n) { printf "7,14:05:00.%06d,%s,%s,%d,0\n", ++t, what, at(p), n }
	BEGIN {
		print "Thread,Time,Action,Pointer,Size,Stream"
		m = 1048576
		for (i = 0; i < 30; i++) { line("allocate", (1000 + i * 316) * m, 300 * m); line("allocate", (1300 + i * 316) * m, 16 * m) }
		for (i = 0; i < 30; i++) line("free", (1000 + i * 316) * m, 300 * m)
		line("allocate failure", 0, 330 * m)
	}' > rmm.csv
for log in rmm.csv "$ROOT/tests/conformance/samples/cupy" "$ROOT/tests/conformance/samples/bfc" \
	"$ROOT/tests/conformance/samples/umpire" "$ROOT/tests/conformance/samples/nsys"; do
	for command in summary explain diagnose tune fit compare; do
		"$CUFRAG" $command "$log" > out.txt 2>&1 < /dev/null
		printf '%s %s: ' "${log##*/}" $command
		grep -iE 'pytorch|torch\.|advise' out.txt | head -n 3
		grep -E '^answer:|^verdict:' out.txt | head -n 1
	done
done
"$CUFRAG" explain rmm.csv | sed -n '/would have served/,/^$/p'
# PyTorch's own: where its defaults serve a request there is nothing to export
"$CUFRAG" explain "$TRACES/oomcap.default.cft" | grep -c 'ALLOC_CONF=$'
true
