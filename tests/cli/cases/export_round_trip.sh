# A snapshot that was exported replays as the recording, and verify finds it identical; one of a
# policy is what PyTorch would have recorded under it.
for t in leak.frames cudagraph.default gnn.late mempool.default oomcap.default streams.default; do
	"$CUFRAG" export "$TRACES/$t.cft" --to memory_viz -o "$t.pickle" || exit 1
	for p in recorded tlsf; do
		"$CUFRAG" replay "$TRACES/$t.cft" --policy $p --no-host --csv - | grep -v '^#' > a.csv
		"$CUFRAG" replay "$t.pickle" --policy $p --no-host --csv - | grep -v '^#' > b.csv
		cmp a.csv b.csv && echo "$t $p same"
	done
	"$CUFRAG" verify "$t.pickle" | tail -1
done
for p in pytorch:expandable_segments:True pytorch:max_split_size_mb:128; do
	"$CUFRAG" export "$TRACES/streams.default.cft" --policy $p --to memory_viz -o other.pickle
	"$CUFRAG" verify other.pickle | tail -2
done
python3 -c 'import pickle; d = pickle.load(open("other.pickle", "rb")); print(sorted(d), len(d["segments"]), len(d["device_traces"][0]))'
