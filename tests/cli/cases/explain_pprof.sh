# The profile, read back field by field: frames of each stack, bytes that add up to what is live.
"$CUFRAG" explain "$TRACES/leak.frames.cft" --stacks live.pb --json live.json > /dev/null || exit
python3 - <<'END'
import json

def fields(b):
    at = 0
    def varint():
        nonlocal at
        v = shift = 0
        while True:
            byte = b[at]
            at += 1
            v |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return v
    while at < len(b):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2
            n = varint()
            assert at + n <= len(b)
            yield tag >> 3, b[at:at + n]
            at += n

top = list(fields(open("live.pb", "rb").read()))
text = [v.decode() for f, v in top if f == 6]
functions = {d[1]: (text[d[2]], text[d[4]]) for d in (dict(fields(v)) for f, v in top if f == 5)}
locations = {}
for v in (v for f, v in top if f == 4):
    d = dict(fields(v))
    line = dict(fields(d[4]))
    locations[d[1]] = "%s %s:%d" % (*functions[line[1]], line[2])
kind = dict(fields(next(v for f, v in top if f == 1)))
samples = []
for v in (v for f, v in top if f == 2):
    pairs = list(fields(v))
    samples.append((sum(n for f, n in pairs if f == 2), [locations[n] for f, n in pairs if f == 1]))
print(text[kind[1]], text[kind[2]], "add up" if sum(s[0] for s in samples) == json.load(open("live.json"))["allocated_bytes"] else "WRONG")
bytes_, frames = max(samples)
print(bytes_, frames[0], "<-", len(frames) - 1, "more")
END
