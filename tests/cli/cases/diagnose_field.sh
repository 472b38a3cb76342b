# One forward pass or training step, as tutorials record it: no leak, no steps for any command.
[ -d "$SHARED/../field" ] || { echo "no recordings of what people report" >&2; exit 77; }
for f in one_forward one_step; do
	set -- "$SHARED/../field/$f.pickle.xz"
	"$CUFRAG" diagnose "$1" > out || exit 1
	sed -n '1p;4s/: .*; most is/: …; most is/p;/^#/p' out
	"$CUFRAG" summary "$1" | grep -i 'leak\|steps'
	"$CUFRAG" explain "$1" | grep '^step \|oldest\| kept'
	"$CUFRAG" diff "$1" --torch 2.15 | grep steps
done
exit 0
