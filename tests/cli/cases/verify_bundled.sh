# every bundled trace; those recorded under a limit have it in their README
set -- "$TRACES"/*.cft
[ -e "$1" ] || { echo "no bundled traces yet" >&2; exit 77; }
for trace; do
	case $(basename "$trace") in oomcap*) limit='--limit 7.5G' ;; *) limit= ;; esac
	"$CUFRAG" verify "$trace" $limit > out || { echo "$trace: exit status $?"; cat out; }
	tail -n 1 out | grep -qx 'verdict: identical' || echo "$trace: $(tail -n 1 out)"
done
