"$CUFRAG" verify "$ROOT/tests/cli/data/seeddemo.pickle.xz" --counters | grep -E ' (segment.all.allocated|reserved_bytes.all.peak|num_device_free) |^verdict'
