# Names of call sites come from a file and must not reach a terminal, a page or a viewer raw.
# needs: gnuplot
python3 - << 'PY'
import pickle
bad = 'evil.py\x1b[31m";set print "owned"\n<script>alert(1)</script>\u202e;x'
frames = [{"filename": bad, "line": 1, "name": "f`id`;\u0007,g"}]
trace, t = [], 1700000000000000
for i in range(40):
    a = 0x7f0000000000 + i * (2 << 20)
    trace.append({"action": "segment_alloc", "addr": a, "size": 2 << 20, "stream": 0, "time_us": t, "frames": frames})
    trace.append({"action": "alloc", "addr": a, "size": 1 << 20, "stream": 0, "time_us": t, "frames": frames})
    t += 1000
pickle.dump({"device_traces": [trace], "allocator_settings": {}, "external_annotations": []}, open("evil.pickle", "wb"), 4)
PY
for c in explain "explain --by stack" diagnose "export --to csv" "export --to openmetrics" "diff evil.pickle"; do
	"$CUFRAG" $c evil.pickle > out 2> err || echo "$c: status $?"
	LC_ALL=C grep -q "$(printf '[\033\007]')" out && echo "$c: raw"
done
"$CUFRAG" explain evil.pickle --out page --stacks f > /dev/null
"$CUFRAG" explain evil.pickle -q --stacks s.json > /dev/null
grep -c '<script>alert' page/explain.html
LC_ALL=C grep -c "$(printf '[\033\007]')" page/explain.html page/explain-live.svg page/explain-live.csv f s.json
python3 -c 'import json; json.load(open("s.json")); print(len(open("f").read().splitlines()))'
