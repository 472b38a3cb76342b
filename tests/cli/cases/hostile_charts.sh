# curves and charts of what is hostile take no more than the other commands (hostile_cost)
# needs: python3 gnuplot
mib=268 seconds=10
[ -n "$FRAG_TEST_NIGHTLY" ] || formats='--formats svg'
grep -q __asan_init "$CUFRAG" && mib=0 seconds=120
cost() { python3 "$DATA/cost.py" "$seconds" "$mib" "$CUFRAG" "$@"; }
for name in names streams; do
	python3 "$DATA/hostile.py" "$name" > "$name.pickle" || exit
	echo "$name curves: $(cost explain --out curves "$name.pickle")"
	echo "$name charts: $(cost compare --out charts $formats "$name.pickle")"
done
