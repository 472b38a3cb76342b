# no command takes much more than reading such a file is worth: many streams, many frames of one long name
command -v python3 > /dev/null || { echo 'no python3' >&2; exit 77; }
mib=384 seconds=30
grep -q __asan_init "$CUFRAG" && mib=0 seconds=120
cost() { python3 "$ROOT/tests/cli/data/cost.py" "$seconds" "$mib" "$CUFRAG" "$@"; }
for name in names streams; do
	python3 "$ROOT/tests/cli/data/hostile.py" "$name" > "$name.pickle" || exit
	for command in info verify explain diagnose; do
		echo "$name $command: $(cost "$command" "$name.pickle")"
	done
	echo "$name replay: $(cost replay "$name.pickle" --policy pytorch)"
	echo "$name diff: $(cost diff "$name.pickle" "$name.pickle")"
	echo "$name export: $(cost export --to csv "$name.pickle" -o "$name.csv")"
	echo "$name memory_viz: $(cost export --to memory_viz "$name.pickle" -o viz.pickle), $(($(wc -c < viz.pickle) >> 24))"
	echo "$name fit: $(cost fit "$name.pickle" --policies pytorch)"
	echo "$name tune: $(cost tune "$name.pickle")"
done
"$CUFRAG" fit streams.pickle --policies pytorch --json - | grep -c '"narrow": true'
