# cards that a made-up NVML tells of; stamps cut off
# needs: cc
. "$DATA/made.sh"
fake_nvml processes
monitor() { FAKE_NVML=$1; export FAKE_NVML; shift; "$CUFRAG" monitor --interval 20ms "$@" > out.txt; status=$?; sed -E 's/[0-9]{4}-[0-9T:.-]+Z/TIME/' out.txt; echo "exit $status"; }
monitor processes --count 1
monitor noprocesses --count 1 --json
monitor eight --count 1 --json | grep -o used_bytes | wc -l
monitor eight --count 1 | tail -n 2
monitor hostile --count 1
# over 80 % at the 4th look, below 75 % at the 7th; the command knows where
monitor growth --count 7 --alarm '80%,run=echo "$CUFRAG_ALARM_GPU $CUFRAG_ALARM_PERCENT" > alarm.txt' > growth.txt
tail -n 1 growth.txt
soon test -s alarm.txt; cat alarm.txt
monitor growth --count 7 --alarm '80%,for=30s' | tail -n 1
# a lost card is said once, and that it is back
monitor lost --count 4 --csv log.csv
sed -E 's/^[0-9T:.Z-]{20,}/TIME/' log.csv
monitor lost --count 3 --csv small.csv --rotate 100B > rotated.txt; ls small.csv*
monitor eight --count 2 --textfile metrics.prom | tail -n 1
grep -v 'gpu="[1-6]"' metrics.prom
# a disk that is full, a closed pipe
monitor growth --count 3 --csv /dev/full | tail -n 1
monitor growth --count 3 --textfile none/there.prom | tail -n 1
{ FAKE_NVML=growth "$CUFRAG" monitor --interval 100ms --count 8 --csv pipe.csv; echo "exit $?" >&2; } | true
wc -l < pipe.csv
# what the driver keeps for itself; instances come and go; a process dies
monitor reserved --count 1
monitor mig --count 3 --csv mig.csv
cut -d, -f 2-5 mig.csv
monitor mig --count 1 --json | grep -o '"instance":[^,]*'
monitor dies --count 3 | grep -o 'pid.*'
# a log of a watch is an input of diagnose
monitor eight --count 30 --csv eight.csv > out8.txt
"$CUFRAG" diagnose eight.csv | head -n 4
# pipes without writer or reader stop no watch: where a process's page is awaited, and as a log
sleep 60 & held=$!; rm -f /dev/shm/cufrag-$held; mkfifo /dev/shm/cufrag-$held log.fifo
export FAKE_PID=$held; FAKE_NVML=self timeout -s KILL 20 "$CUFRAG" monitor --interval 20ms --count 2 > out.txt; echo "exit $?"; wc -l < out.txt
rm /dev/shm/cufrag-$held; kill $held
FAKE_NVML=growth timeout -s KILL 20 "$CUFRAG" monitor --interval 20ms --count 2 --csv log.fifo > out.txt; echo "exit $?"; wc -l < out.txt
# too old, nothing there, nothing to listen on
mkdir old && library old/libnvidia-ml.so.1 "$DATA/fake_nvml.c" -DOLD
LD_LIBRARY_PATH=$PWD/old "$CUFRAG" monitor; echo "exit $?"
monitor growth --listen 256.0.0.1:80
monitor nodriver
monitor none
LD_LIBRARY_PATH= "$CUFRAG" monitor --alarm 80
"$CUFRAG" monitor --interval 1x
"$CUFRAG" monitor --alarm '80%,for=x'
"$CUFRAG" monitor --alarm '4294967376%'
"$CUFRAG" monitor --alarm '80%,for=0x10'
