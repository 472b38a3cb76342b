# commands that write files, also record --no-gpu, ended by a signal at any step, or by a limit on
# the length of files: existing files are complete, no temporary file is left here or in TMPDIR
# needs: cc python3 gnuplot
. "$DATA/made.sh"
library signal_at.so "$DATA/signal_at.c"
library libcupti.so "$DATA/fake_cupti.c" -DLIBRARY
compiled program "$DATA/fake_cupti.c"
fake_nvml growth
mkdir bin && ln -s "$DATA/empty_gnuplot.sh" bin/gnuplot
export CUFRAG_CUPTI=$PWD/libcupti.so
export ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS HERE="$PWD" SOURCE_DATE_EPOCH=0
"$CUFRAG" sweep "$TRACES/leak.frames.cft" --policies pytorch -o results.sqlite > /dev/null || exit
python3 "$DATA/signals.py"
# a program that is recorded, or an alarm's command, has the signals as they were
"$CUFRAG" record --by preload -o none.cft -- sh -c 'grep -E "^Sig(Ign|Blk)" /proc/self/status > during' 2> /dev/null
grep -E '^Sig(Ign|Blk)' /proc/self/status | cmp - during && echo same signals
