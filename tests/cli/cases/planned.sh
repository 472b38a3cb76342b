# plans of steps, and runs that follow them under `check`: no two blocks meet
cat > made.py <<'END'
"""KIND STEPS: weights; then steps of activations and an output that lives until the next one is there.
again: and one more block of its size. slow: 17 seconds between one event and the next."""
import pickle
import sys

kind, steps = sys.argv[1], int(sys.argv[2])
trace, marks, at, output = [], [], 1 << 40, None

def now():
    return len(trace) << (24 if kind == "slow" else 0)

def put(size):
    global at
    trace.append({"action": "alloc", "addr": at, "size": size, "stream": 0, "time_us": now()})
    at += size + 511 & ~511
    return trace[-1]

def drop(block):
    trace.append({**block, "action": "free_completed", "time_us": now()})

put(50 << 20), put(3000)
for step in range(steps):
    base = 7 + (3 * (step * 5 % 11) if kind == "changing" else 0) << 20
    blocks = [put(base * (1 + k % 3)) for k in range(8)]
    last, output = output, put(9 * base)
    if last:
        drop(last)
    if kind == "again":
        drop(put(9 * base))
    for block in reversed(blocks):
        drop(block)
    marks += [{"device": 0, "name": "Optimizer.step#SGD.step", "stage": stage, "time_us": now() - 1}
              for stage in ("START", "END")]
snapshot = {"segments": [], "device_traces": [trace], "external_annotations": marks}
pickle.dump(snapshot, open(kind + sys.argv[2], "wb"))
END
plan() { # RECORDING OPTION...: into RECORDING.plan
	"$CUFRAG" plan "$@" --time 60 -o "$1.plan" | grep '^plan'
}
follow() { # RECORDING OPTION...
	"$CUFRAG" replay "$@" --policy "check/planned:plan=$1.plan" --counters |
		grep -E '^(result|efficiency_ratio|planned)' | tr -s ' ' | cut -d ' ' -f -2 | paste -sd ' '
}
for made in 'same 12' 'again 5' 'changing 12' 'changing 20' 'same 2' 'same 30' 'slow 3'; do
	python3 made.py $made
done
# every request finds its place, two outputs take turns; too few steps for that; steps that change
for of in same12 again5 changing12; do
	plan $of && follow $of
done
# a card on which the plan has no room: the fallback does it all
follow changing12 --capacity 1700M
# too few steps are cut into windows, of as many requests or as much time as one asks for
plan same2 && follow same2
plan same12 --window 55us
# more steps or windows than there may be
plan same12 --train 13
plan slow3 --window 1us
# what follows the planned steps has no part in the plan
for of in 'changing12 changing20 --train 6' 'same12 same30 --train 6' 'same12 same30 --window 10 --train 2'; do
	set -- $of
	first=$1 second=$2
	shift 2
	plan $first "$@" && plan $second "$@"
	sed -i 2d $first.plan $second.plan && cmp $first.plan $second.plan
done
