"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --json - | sed '/"version"/d; /"counters"/,$d'
"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --json - | grep -E '"(segment.all.allocated|reserved_bytes.all.peak|num_device_free)"'
