# The same command with one thread and with several writes the same bytes. Under ThreadSanitizer
# (make tsan) a race ends the program with a status of its own.
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1}"
numbers='1 5'
grep -q __tsan_init "$CUFRAG" && numbers=5 # which looks for races
# same COMMAND ARGUMENT...: its JSON, without the command line and the number of threads
same() {
	for n in $numbers; do
		"$CUFRAG" "$@" --threads $n --json $n > out 2>&1 || { echo "$*, $n threads: exit $?"; tail -n 40 out; }
		sed -i 's/"command_line": .*//; s/"threads": .*//' $n
		cmp ${numbers%% *} $n || { echo "$*: $n threads"; diff ${numbers%% *} $n | head -n 20; }
	done
}
ln -s "$TRACES" traces
third=streams one=gnn.default few=
[ "$FRAG_TEST_QUICK/$FRAG_TEST_NIGHTLY" != 1/ ] || third=cudagraph one=leak.frames few='--policies pytorch;async --optimum bound' # a tenth of their time
same compare traces/seeddemo.default.cft traces/mempool.default.cft traces/$third.default.cft --policies all --on-oom=skip --no-host
# shellcheck disable=SC2086 # no word, or four
same compare traces/modelpar.default.cft $few --no-host # two devices
same compare traces/gnn.default.cft --policy native --no-host # more threads than policies
# the reading thread and the replaying one
same replay traces/varlen.default.cft --policy pytorch --stream --no-host
same compare traces/modelpar.default.cft --policies 'pytorch;buddy;async' --stream --no-host
same fit traces/$one.cft
same tune traces/$one.cft
# charts are drawn at the same time
! command -v gnuplot > none || "$CUFRAG" compare traces/$one.cft --no-host --threads 4 --formats svg --out report > out 2>&1 || tail -n 40 out
! command -v gnuplot > none || [ -s report/report.html ] || echo 'no report'
