# what record_torch.py writes beside a snapshot is read: the limit, the card, what was held beside
T=$SHARED/torch
[ -d "$T" ] || { echo "no shared traces" >&2; exit 77; }
cp "$T/varlen.gc.pickle.xz" a.pickle.xz
cat > a.pickle.meta.json << 'EOF'
{"cufrag_meta": 1, "torch": "2.11.0+cu130", "devices": [
 {"ordinal": 0, "name": "NVIDIA H200", "total_bytes": 150109880320, "limit_fraction": 0.2, "beside_bytes": 2700000000}]}
EOF
"$CUFRAG" info a.pickle.xz | grep -E '^(limit|checked|recorded by)|^  card'
"$CUFRAG" verify a.pickle.xz | tail -1
"$CUFRAG" compare a.pickle.xz --policies recorded --json - | grep -E '"(limit_source|outside_bytes|smallest_card)"' | sed 's/^ *//'
"$CUFRAG" fit a.pickle.xz --policies recorded | grep -o 'kept free.*'
"$CUFRAG" import a.pickle.xz -o a.cft | tail -1
# a wrong one explains nothing: the right one is found
sed -i 's/0.2,/0.1,/' a.pickle.meta.json
"$CUFRAG" info a.pickle.xz | grep -E '^(limit|checked)'
# hostile ones are refused with the recording
for bad in '{' '{"cufrag_meta": 1, "devices": [{"ordinal": 0, "total_bytes": -1}]}' ''; do
	printf '%s' "$bad" > a.pickle.meta.json
	"$CUFRAG" info a.pickle.xz
	echo "exit $?"
done
rm a.pickle.meta.json
mkfifo a.pickle.meta.json
timeout 10 "$CUFRAG" verify a.pickle.xz
echo "exit $?"
rm a.pickle.meta.json
head -c 70000 /dev/zero > a.pickle.meta.json
"$CUFRAG" import a.pickle.xz -o b.cft
echo "exit $?"
rm a.pickle.meta.json
# the name of the packed file counts first
echo '{"cufrag_meta": 1, "devices": []}' > a.pickle.xz.meta.json
echo '{' > a.pickle.meta.json
"$CUFRAG" info a.pickle.xz | grep -c checked
ls
