# a simulated card against itself: the same calls, bytes and times
"$CUFRAG" compare "$TRACES/mempool.default.cft" --policies 'pytorch;vmm;cupy' --repeats 2 \
	--against-sim - --against-calls calls.csv --optimum off --json /dev/null | cut -d, -f 1,3,4,6,9,12,13,19,26 | head -n 4
head -n 2 calls.csv | cut -d, -f 1-8
