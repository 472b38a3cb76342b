# arrays for NumPy: what cannot be written as such (the arrays themselves: tests/python/test_recording.py)
trace=$TRACES/modelpar.default.cft
(ulimit -f 100; "$CUFRAG" export "$trace" --to npz -o big.npz) 2>&1
"$CUFRAG" export "$trace" --to npz 2>&1 | head -n 1
"$CUFRAG" export "$trace" --to csv --after 3 2>&1
"$CUFRAG" export "$trace" --to npz --after -1 -o other.npz 2>&1
"$CUFRAG" export "$trace" --to npz --after 2000 -o moment.npz
ls *.npz
