data=$ROOT/tests/cli/data/seeddemo.pickle.xz
"$CUFRAG" replay "$data" --policy buddy --no-host > a && "$CUFRAG" replay "$data" --policy buddy --no-host > b && cmp a b
"$CUFRAG" replay "$data" --policy buddy --no-host --json a.json > /dev/null
"$CUFRAG" replay "$data" --policy buddy --no-host --json b.json > /dev/null
sed -i 's/[ab]\.json/x.json/' a.json b.json && cmp a.json b.json && echo same
