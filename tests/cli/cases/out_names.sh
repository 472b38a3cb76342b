# folders that gnuplot would take for commands, variables or homes
# needs: gnuplot
cp "$TRACES/seeddemo.default.cft" in.cft
set -- in.cft --policies pytorch --no-host --optimum bound
[ -n "$FRAG_TEST_NIGHTLY" ] || set -- "$@" --formats svg
for dir in '<touch X;x' "'|touch X;x" '|touch X' '~' "\$x" '"q' '@x' 'a b' '-'; do
	"$CUFRAG" compare "$@" --out "$dir" > /dev/null || echo "failed: $dir"
	[ -s "./$dir/memory.svg" ] && [ -s "./$dir/report.html" ] && rm -r "./$dir"
done
ls -A
# a folder in the place of a file: nothing is moved
mkdir -p full/report.html
"$CUFRAG" compare "$@" --out full > /dev/null
echo "exit $?"
ls -A full
