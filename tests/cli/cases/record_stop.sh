# Ctrl-Z stops cufrag with the program, so that the shell has its terminal back
bash -c 'set -m
"$CUFRAG" record --no-gpu -o run.cft -- sh -c "touch runs; until [ -e enough ]; do sleep 0.02; done" 2> err & job=$!
until [ -e runs ]; do sleep 0.02; done
kill -TSTP -- -$job
for _ in $(seq 1000); do ps -o stat= -p $job | grep -q ^T && break; sleep 0.02; done
ps -o stat= -p $job | cut -c1; touch enough
kill -CONT -- -$job; wait $job; echo $?' 2> said
rm -f runs enough
