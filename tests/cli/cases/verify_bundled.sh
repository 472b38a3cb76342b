# every trace in the repository, event by event; those recorded under a limit have it in their README or in the file
set -- "$TRACES"/*.cft "$ROOT"/tests/golden/recorded/*.cft
[ -e "$1" ] || { echo "no bundled traces" >&2; exit 77; }
for trace; do
	case $trace in "$TRACES"/oomcap*) limit='--limit 7.5G' ;; *) limit= ;; esac
	"$CUFRAG" verify "$trace" $limit > out || { echo "$trace: exit status $?"; cat out; }
	tail -n 1 out | grep -qx 'verdict: identical' || echo "$trace: $(tail -n 1 out)"
done
