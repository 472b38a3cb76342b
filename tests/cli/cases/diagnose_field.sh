# What tutorials tell people to record, one forward pass or one training step, is no leak.
[ -d "$SHARED/../field" ] || { echo "no recordings of what people report" >&2; exit 77; }
for f in one_forward one_step; do
	"$CUFRAG" diagnose "$SHARED/../field/$f.pickle.xz" > out || exit 1
	sed -n '1p;4s/: .*; most is/: …; most is/p;/^#/p' out
	"$CUFRAG" summary "$SHARED/../field/$f.pickle.xz" | grep -i 'leak\|steps'
done
exit 0
