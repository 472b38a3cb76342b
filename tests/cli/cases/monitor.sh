# cards that a made-up NVML tells of; stamps cut off
cc=${CC:-cc}
command -v "$cc" > /dev/null || { echo 'no C compiler' >&2; exit 77; }
mkdir lib && "$cc" -std=gnu17 -O1 -shared -fPIC -o lib/libnvidia-ml.so.1 "$ROOT/tests/cli/data/fake_nvml.c" || exit
export LD_LIBRARY_PATH=$PWD/lib
monitor() { FAKE_NVML=$1; export FAKE_NVML; shift; "$CUFRAG" monitor --interval 20ms "$@" > out.txt; status=$?; sed -E 's/[0-9]{4}-[0-9T:.-]+Z/TIME/' out.txt; echo "exit $status"; }
monitor processes --count 1
monitor noprocesses --count 1 --json
monitor eight --count 1 --json | grep -o used_bytes | wc -l
monitor eight --count 1 | tail -n 2
monitor hostile --count 1
# over 80 % at the 4th look, below 75 % at the 7th; the command knows where
monitor growth --count 7 --alarm '80%,run=echo "$CUFRAG_ALARM_GPU $CUFRAG_ALARM_PERCENT" > alarm.txt' > growth.txt
tail -n 1 growth.txt
sleep 0.3; cat alarm.txt
monitor growth --count 7 --alarm '80%,for=30s' | tail -n 1
# a lost card is said once, and that it is back
monitor lost --count 4 --csv log.csv
sed -E 's/^[0-9T:.Z-]{20,}/TIME/' log.csv
monitor lost --count 3 --csv small.csv --rotate 100 > rotated.txt; ls small.csv*
monitor eight --count 2 --textfile metrics.prom | tail -n 1
grep -v 'gpu="[1-6]"' metrics.prom
command -v promtool > checked.txt && promtool check metrics < metrics.prom
# a disk that is full, a closed pipe
monitor growth --count 3 --csv /dev/full | tail -n 1
monitor growth --count 3 --textfile none/there.prom | tail -n 1
monitor nodriver
monitor none
LD_LIBRARY_PATH= "$CUFRAG" monitor --alarm 80
"$CUFRAG" monitor --interval 1x
"$CUFRAG" monitor --alarm '80%,for=x'
