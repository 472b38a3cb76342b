"$CUFRAG" compare "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policies 'pytorch;native;buddy' --no-host --json out.json > out
grep -E '"(schema|policy|completed|peak_reserved_bytes)"' out.json | sed 's/^ *//'
grep -cE '^ *(pytorch|native|buddy) ' out
