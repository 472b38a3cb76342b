# files of PyTorch 2.1 and 2.2 lack the settings: expandable segments show, of others verify says what is missing
cd "$SHARED/versions" 2> /dev/null || { echo "no $SHARED/versions" >&2; exit 77; }
for f in mix.expandable streams.expandable oom.expgc mix.pow2list; do
	"$CUFRAG" verify 2.1.2.$f.pickle.xz
done
"$CUFRAG" verify 2.1.2.mix.pow2list.pickle.xz --conf "$(sed -n 's/^"conf": "\(.*\)",$/\1/p' 2.1.2.mix.pow2list.json)"
