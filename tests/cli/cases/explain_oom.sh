# What PyTorch said was allocated, and reserved but unallocated: to the byte of its message.
[ -d "$SHARED/diagnose" ] || { echo "no recordings of planted defects" >&2; exit 77; }
for c in oom_frag oom_batch oom_need; do
	"$CUFRAG" explain "$SHARED/diagnose/$c.a.pickle.xz" --at oom | sed -e 1d -e '/^event/,/^$/d' -e '/^Live memory/,$d'
	grep -o 'memory [0-9.]* GiB is allocated by PyTorch, and [0-9.]* [A-Za-z]* is reserved' "$SHARED/diagnose/$c.a.json"
done
# a limit that is known only within bounds: what serves the request under some of them is uncertain
if [ -d "$SHARED/versions" ]; then
	"$CUFRAG" explain "$SHARED/versions/2.11.0.useonoom.default.pickle.xz" --at oom --json e.json > /dev/null
	python3 -c '
import json
e = json.load(open("e.json"))
print(e["limit_low_bytes"] < e["limit_high_bytes"], [(r["text"], r["served"]) for r in e["oom"]["remedies"] if r["uncertain"]])'
	rm e.json
fi
