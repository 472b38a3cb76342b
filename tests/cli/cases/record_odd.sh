# programs that end, change and close things as they like: nothing of the recording is lost, nothing of theirs is written to
# needs: cc
. "$DATA/made.sh"
fake_cuda
mkdir tmp folder.cft
ln -s program odd
for what in exec child kill abort _exit close chdir dies; do
	"$CUFRAG" record --by preload -o odd.cft -- ./odd $what > out.txt 2>&1
	echo "$what: exit $?: $(tail -n 1 out.txt)"
done
cat mine.txt
# by hand: the file of a killed program ends with empty lines
recorded own ./odd _exit
"$CUFRAG" info own.*.csv | grep '  events'
grep -c . own.*.csv
# its shared page is taken away for it; a file that cannot be read stays
"$CUFRAG" record --by preload -o odd.cft -- ./odd late > out.txt 2>&1
ls "/dev/shm/cufrag-$(head -n 1 out.txt)" 2> /dev/null
TMPDIR=$PWD/tmp "$CUFRAG" record --by preload -o odd.cft -- ./odd garbage > out.txt 2>&1
sed -E "s|'/[^']*/cuda|'FOLDER/cuda|; s|'/[^']*/cufrag-record[^']*'|FOLDER|; s/[0-9]+.csv/PID.csv/; s/line [0-9]+/line N/" out.txt
ls tmp | sed 's/-[A-Za-z0-9]*$/-X/'; rm -r tmp/*
# AddressSanitizer wants to be the first library, and is told that it need not
if "$cc" -w -std=gnu17 -fsanitize=address -o asan "$DATA/fake_cuda.c" -ldl 2> /dev/null; then
	ASAN_OPTIONS=detect_leaks=0 "$CUFRAG" record --by preload -o asan.cft -- ./asan plain
else
	echo 'asan.cft: 1 device, 1 events'
fi
# a file that cannot be written: said before the program runs, or the recording goes elsewhere
"$CUFRAG" record --by preload -o none/odd.cft -- sh -c 'echo ran'; echo "exit $?"
TMPDIR=$PWD/tmp "$CUFRAG" record --by preload -o folder.cft -- ./odd plain 2> out.txt; echo "exit $?"
"$CUFRAG" info tmp/cufrag-*.cft | grep '  events'
sed 's/cufrag-[A-Za-z0-9]*.cft/cufrag-XXXXXX.cft/; s|/[^ ]*/tmp/|TMP/|' out.txt
# not a program, or one without CUDA
for program in ./nothing ./mine.txt /; do "$CUFRAG" record -- "$program"; echo "exit $?"; done
"$CUFRAG" record ./odd plain; echo "exit $?"
"$CUFRAG" record --; echo "exit $?"
"$CUFRAG" record --by preload -- true; echo "exit $?"
