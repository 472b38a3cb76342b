# Ctrl-Z stops cufrag with the program, so that the shell has its terminal back
bash -c 'set -m
"$CUFRAG" record --no-gpu -o run.cft -- sleep 1 2> err &
sleep 0.7; kill -TSTP -- -$!; sleep 0.5; ps -o stat= -p $! | cut -c1
kill -CONT -- -$!; wait $!; echo $?' 2> said
