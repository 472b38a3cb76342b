# the keys that docs and scripts rely on
data=$DATA/seeddemo.pickle.xz
"$CUFRAG" compare "$data" --policy pytorch --json out.json > /dev/null
for key in schema version trace device results policy params completed first_oom peak_requested_bytes \
	peak_allocated_bytes peak_active_bytes peak_reserved_bytes efficiency_ratio frag_bytes lower_bound_bytes \
	reserved_over_bound_ratio non_releasable_bytes releasable_bytes largest_free_bytes free_frag_ratio ooms_count \
	retries_count events_per_s; do
	grep -q "\"$key\": " out.json || echo "$key is missing"
done
