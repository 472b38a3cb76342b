# no command takes much more than reading such a file is worth: many streams, many frames of one
# long name what is allowed: 256 MiB above the files, and five times what a busy machine takes
# needs: python3 gnuplot
[ -n "$FRAG_TEST_NIGHTLY" ] || formats='--formats svg'
mib=268 seconds=10
grep -q __asan_init "$CUFRAG" && mib=0 seconds=120
cost() { python3 "$DATA/cost.py" "$seconds" "$mib" "$CUFRAG" "$@"; }
for name in names streams; do
	python3 "$DATA/hostile.py" "$name" > "$name.pickle" || exit
	for command in info verify diagnose; do
		echo "$name $command: $(cost "$command" "$name.pickle")"
	done
	echo "$name replay: $(cost replay "$name.pickle" --policy pytorch)"
	echo "$name diff: $(cost diff "$name.pickle" "$name.pickle")"
	echo "$name export: $(cost export --to csv "$name.pickle" -o "$name.csv")"
	echo "$name memory_viz: $(cost export --to memory_viz "$name.pickle" -o viz.pickle), $(($(wc -c < viz.pickle) >> 24))"
	echo "$name fit: $(cost fit "$name.pickle" --policies pytorch --json fit.json)"
	echo "$name tune: $(cost tune --budget 3 "$name.pickle")"
	echo "$name explain: $(cost explain --out curves "$name.pickle")"
	echo "$name compare: $(cost compare --out charts $formats "$name.pickle")"
	echo "$name import: $(cost import "$name.pickle" -o "$name.cft")"
	echo "$name scale: $(cost scale --at 2,4 --to 8 "$name.pickle" "$name.pickle")"
done
# by count: replays of a policy
grep -c '"narrow": true' fit.json
python3 -c 'import json; print(json.load(open("fit.json"))["results"][0]["traces"][0]["probes_count"] <= 40)'
