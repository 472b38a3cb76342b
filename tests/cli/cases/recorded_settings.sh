# a state without a history is nothing to verify; settings that the allocator would not take are told with the recording's name
python3 - << 'END'
import pickle
block = lambda address, size, state: dict(address=address, size=size, requested_size=size, state=state, frames=[])
segment = dict(device=0, address=0x7f0000000000, total_size=2 << 20, allocated_size=512, active_size=512, requested_size=512, stream=0,
               segment_type="small", segment_pool_id=(0, 0), is_expandable=False, frames=[],
               blocks=[block(0x7f0000000000, 512, "active_allocated"), block(0x7f0000000200, (2 << 20) - 512, "inactive")])
event = lambda action, size: dict(action=action, addr=0x7f0000000000, size=size, stream=0, time_us=1, frames=[])
settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False}
def write(name, events, **changed):
    trace = [event("segment_alloc", 2 << 20), event("alloc", 512)] if events else []
    with open(name, "wb") as f:
        pickle.dump({"segments": [segment], "device_traces": [trace], "allocator_settings": dict(settings, **changed)}, f, 2)
write("state.pickle", False)
write("good.pickle", True)
write("bad.pickle", True, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:nonsense")
END
for f in "good.pickle" "state.pickle" "good.pickle state.pickle"; do
	"$CUFRAG" verify $f | grep verdict
	"$CUFRAG" verify $f > /dev/null 2>&1 || echo "exit $?"
done
for c in verify "replay --policy recorded" "compare --policy recorded" "fit --policy recorded" explain; do
	"$CUFRAG" ${c%% *} bad.pickle $(echo "$c" | cut -s -d ' ' -f 2-) > /dev/null || echo "exit $?"
done
rm -f ./*.pickle
