# only what a release knows is tried, and it is named; version= is no setting of PyTorch
"$CUFRAG" tune "$TRACES/gnn.default.cft" --torch 2.6 --budget 40 --threads 1 --json a.json > a.txt
grep -c large_segment_size_mb a.json
grep -cE 'max_split_size_mb:20[,"]' a.json
grep -o '# for PyTorch .*' a.txt
tr -d ' \n' < a.json | grep -o '"torch":\[[^]]*\]'
"$CUFRAG" tune "$TRACES/gnn.default.cft" --torch 2.11 --budget 40 --threads 1 --json b.json > /dev/null
grep -q large_segment_size_mb b.json && echo tried
"$CUFRAG" tune "$TRACES/gnn.default.cft" --space pytorch:version=2.11 --budget 5 --threads 1 | grep '^    export' | grep -c version
exit 0
