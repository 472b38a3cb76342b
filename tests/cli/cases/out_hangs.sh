# a gnuplot that never ends: the second Ctrl-C ends it, and nothing is left
. "$DATA/made.sh"
mkdir bin
printf '#!/bin/sh\necho $$ >> "%s/pids"\nexec sleep 1000\n' "$PWD" > bin/gnuplot
chmod +x bin/gnuplot
sh -c 'PATH=$1:$PATH exec "$2" compare "$3" --policies pytorch --optimum bound --threads 1 --out results > /dev/null' \
	sh "$PWD/bin" "$CUFRAG" "$TRACES/leak.frames.cft" &
soon test -s pids
kill -TERM $!
taken() { ! grep -q '^ShdPnd:.*[4-7c-f]...$' /proc/$!/status; }
soon taken
sleep 0.2 # two within 0.1 s count as one
kill -TERM $!
wait $!
echo "exit $?"
for pid in $(cat pids); do kill -0 "$pid" 2> /dev/null && echo "still there: $pid"; done
ls -A
