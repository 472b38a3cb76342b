# arrays for NumPy, read without it: a zip whose sums are right, arrays at multiples of 64 bytes, the figures of the CSV
# needs: python3
trace=$TRACES/modelpar.default.cft
"$CUFRAG" export "$trace" --to npz -o events.npz && "$CUFRAG" export "$trace" --to npz --after 2000 -o moment.npz &&
	"$CUFRAG" export "$trace" --to csv -o events.csv || exit
python3 - << 'END'
import array, ast, csv, zipfile

def load(path):
    found = {}
    with zipfile.ZipFile(path) as z, open(path, "rb") as raw:
        print(path, z.testzip(), len(z.namelist()))
        for member in z.infolist():
            data = z.read(member)
            assert data[:8] == b"\x93NUMPY\x01\x00", member
            start = 10 + int.from_bytes(data[8:10], "little")
            head = ast.literal_eval(data[10:start].decode())
            raw.seek(member.header_offset + 26)
            at = member.header_offset + 30 + int.from_bytes(raw.read(2), "little") + int.from_bytes(raw.read(2), "little") + start
            assert at % 64 == 0 and member.compress_type == 0, member
            raw.seek(at)  # where it lies
            values = array.array({"1": "B", "2": "H", "4": "I", "8": "Q"}[head["descr"][-1]], raw.read(len(data) - start))
            assert (len(values),) == head["shape"], member
            found[member.filename] = values
    return found

events, moment = load("events.npz"), load("moment.npz")
with open("events.csv") as file:
    rows = list(csv.DictReader(file))
for device in "0", "1":
    mine = [r for r in rows if r["device"] == device]
    for column in "bytes", "stream", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes":
        assert list(events["device%s.events.%s.npy" % (device, column)]) == [int(r[column]) for r in mine], column
    print(device, len(mine), sum(moment["device%s.segments.bytes.npy" % device]) == int(mine[2000]["reserved_bytes"]))
END
(ulimit -f 100; "$CUFRAG" export "$trace" --to npz -o big.npz) 2>&1
"$CUFRAG" export "$trace" --to npz 2>&1 | head -n 1
"$CUFRAG" export "$trace" --to csv --after 3 2>&1
"$CUFRAG" export "$trace" --to npz --after -1 -o other.npz 2>&1
ls *.npz
