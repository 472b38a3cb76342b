# 400 MB, freed, 200 MB from the same segment, empty_cache at the end
"$CUFRAG" replay "$ROOT/tests/cli/data/seeddemo.pickle.xz" --policy pytorch --json out.json > /dev/null
grep -E '"(policy|completed|first_oom|peak_requested_bytes|peak_reserved_bytes|final_reserved_bytes|events_count|allocs_count)"' out.json | sed 's/^ *//'
ls
