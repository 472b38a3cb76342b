# same seed, same answer, whatever the threads; better than what was recorded
"$CUFRAG" tune "$TRACES/gnn.default.cft" --budget 200 --threads 1 --json a.json > a.txt
"$CUFRAG" tune "$TRACES/gnn.default.cft" --budget 200 --threads 3 --json b.json > b.txt
cmp a.json b.json && cmp a.txt b.txt && echo same
grep -c '^    export PYTORCH_CUDA_ALLOC_CONF=' a.txt
best=$(grep -A 9 '"best"' a.json | sed -n 's/.*"peak_reserved_bytes": \([0-9]*\).*/\1/p')
conf=$(grep -A 9 '"best"' a.json | sed -n 's/.*"conf": "\(.*\)",/\1/p')
real=$("$CUFRAG" replay "$TRACES/gnn.default.cft" --policy "pytorch:$conf" --json - |
	sed -n 's/.*"peak_reserved_bytes": \([0-9]*\).*/\1/p' | head -n 1)
[ "$best" = "$real" ] && [ "$best" -le 10359930880 ] && echo predicted
