# what a recorded process holds, beside what the driver says of it
# needs: cc
[ -w /dev/shm ] || { echo 'no shared memory' >&2; exit 77; }
. "$DATA/made.sh"
fake_cuda
fake_nvml self
"$CUFRAG" record --by preload -o run.cft -- ./program dlsym > out.txt || exit
# blocks of 3 MiB and 1000 B in three pages of 2 MiB; user and PID cut off
LD_PRELOAD=$recorder CUFRAG_RECORD_BY=preload CUFRAG_RECORD_CUDA=own ./program dlsym stop & pid=$!
FAKE_PID=$pid
export FAKE_PID
holds() { "$CUFRAG" monitor --count 1 | grep -q holds; }
soon holds
"$CUFRAG" monitor --count 1 | grep -o 'pid.*' | sed -E "s/pid $pid/pid PID/; s/of [^ ]+ 3/of USER 3/"
"$CUFRAG" monitor --count 1 --json | grep -o '"held":[^}]*}'
"$CUFRAG" monitor --count 1 --textfile metrics.prom > out.txt
sed -nE "s/pid=\"$pid\"/pid=\"PID\"/; s/user=\"[^\"]*\"/user=\"USER\"/; /^cufrag_process/p" metrics.prom
# gone with the process
touch stop
wait $pid
ls /dev/shm | grep -c "cufrag-$pid$"
# another user's page, or a file that is not a page, is rejected
sleep 60 & FAKE_PID=$!
head -c 500 /dev/zero > "/dev/shm/cufrag-$FAKE_PID"
"$CUFRAG" monitor --count 1 | grep -c holds
rm -f "/dev/shm/cufrag-$FAKE_PID"
kill $FAKE_PID
exit 0
