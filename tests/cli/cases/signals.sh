# commands that write files, also record --no-gpu, ended by a signal at any step, or by a limit on
# the length of files: existing files are complete, no temporary file is left here or in TMPDIR
# needs: cc python3 gnuplot
. "$DATA/made.sh"
library signal_at.so "$DATA/signal_at.c"
library libcupti.so "$DATA/fake_cupti.c" -DLIBRARY
compiled program "$DATA/fake_cupti.c"
fake_nvml growth
export CUFRAG_CUPTI=$PWD/libcupti.so
export ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS HERE="$PWD" SOURCE_DATE_EPOCH=0
"$CUFRAG" sweep "$TRACES/leak.frames.cft" --policies pytorch -o results.sqlite > /dev/null || exit
python3 "$DATA/signals.py"
# what a kill left goes with the next run, what somebody still holds does not
mkdir -p out/.cufrag-abcdef/inside out/.cufrag-uvwxyz held/.cufrag-abcdef temp/.cufrag-abcdef
touch out/.cufrag-abcdef/inside/file out/.cufrag-ghijkl out/.cufrag-longer-name held/.cufrag-ghijkl temp/.cufrag-abcdef/plan
ln -s "$PWD/held" out/.cufrag-mnopqr
exec 9> held/.cufrag-ghijkl && python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
for out in out held; do
	TMPDIR=$PWD/temp "$CUFRAG" compare "$TRACES/leak.frames.cft" --policies 'pytorch;planned' --formats svg --optimum bound --out $out > /dev/null
done
ls -A temp; ls -dA out/.c* held/.c*
# a program that is recorded, or an alarm's command, has the signals as they were
"$CUFRAG" record --by preload -o none.cft -- sh -c 'grep -E "^Sig(Ign|Blk)" /proc/self/status > during' 2> /dev/null
grep -E '^Sig(Ign|Blk)' /proc/self/status | cmp - during && echo same signals
