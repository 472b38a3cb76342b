# Every shape of nvidia-smi's logs, of two cards of which one fills up: a series for each.
say() { echo "== $1"; "$CUFRAG" diagnose "$1" | grep -E '^(.*: )?(leak|steady|undecided)$|^#|^  grown'; }
rows() { # FILE HEADER ROW ROW: 40 times, @M is the memory that grows, @T the time
	{ [ -z "$2" ] || echo "$2"
	for i in $(seq 10 49); do
		printf '%s\n' "$3" "$4" | sed "/^$/d;s/@M/$((4000 + 30 * i))/;s/@L/$((i < 20 ? 50 * i : 500 * (i - 18)))/;s,@T,2026/04/25 16:00:$i.00,"; done; } > "$1"
	say "$1"
}
rows uuid.csv 'timestamp, uuid, memory.used [MiB]' '@T1, GPU-a, @M MiB' '@T2, GPU-b, 900 MiB'
rows bus.csv 'timestamp;pci.bus_id;name;memory.used [MiB]' '@T1;00000000:01:00.0;A;@M MiB' '@T2;00000000:02:00.0;A;900 MiB'
rows name.csv 'timestamp, name, memory.used [MiB]' '@T1, NVIDIA A100, @M MiB' '@T2, NVIDIA A100, 900 MiB'
rows apps.csv 'timestamp, gpu_uuid, pid, used_gpu_memory [MiB]' '@T1, GPU-a, 77, @M MiB' '@T2, GPU-a, 78, 900 MiB'
rows bare.csv '' '@T1, 0, @M, 24576' '@T2, 1, 900, 24576'
rows units.csv '' '@T1, NVIDIA A100-SXM4-40GB, 35 %, @M MiB, 40960 MiB' ''
rows pmon.txt '# gpu         pid   type     fb   ccpm    command' '    0   4711     C   @M    0    python3' '    1     -     -    -    -    -'
rows several.csv 'time_s,allocated_mib,reserved_mib' '@T1,@M,3000' ''
rows cards.csv 'time_s,gpu,used_mib,reserved_mib' '@T1,0,@M,3000' '@T1,1,900,3000'
rows table.txt '' 'Sat Apr 25 16:00:00 2026
+------------------------------------+
| NVIDIA-SMI 550.54.15   CUDA Version: 12.4 |
|   0  NVIDIA A100  On  |   00000000:00:04.0 Off |  0 |
| N/A   34C    P0  60W /  400W |  @MMiB /  40960MiB |  55%  Default |' '|   1  NVIDIA A100  On  |   00000000:00:05.0 Off |  0 |
| N/A   34C    P0  60W /  400W |   900MiB /  40960MiB |  0%  Default |
|    0   N/A  N/A      1234      C   python3    3900MiB |'
rows query.txt '' '=====NVSMI LOG=====
GPU 00000000:01:00.0
    FB Memory Usage
        Used     : @M MiB
    BAR1 Memory Usage
        Used     : 4 MiB' 'GPU 00000000:02:00.0
    FB Memory Usage
        Used     : 900 MiB'
rows few.csv 'timestamp, index, memory.used [MiB]' '@T1, 0, @M MiB' '' && head -6 few.csv > short.csv && say short.csv
rows nounits.csv 'timestamp, memory.used [MiB]' '@T1, 4711' ''
# dmon repeats its head; a card without a value is no series
rows dmon.txt '' '# gpu     fb   bar1   ccpm' '    0   @M      4      -
    1      -      4      -'
# loading is no growth, all that follows is; the card is named
rows loaded.csv 'timestamp, index, name, memory.used [MiB], memory.total [MiB]' '@T1, 0, NVIDIA A100, @L MiB, 40960 MiB' '@T1, 1, Tesla T4, 900 MiB, 15360 MiB'
"$CUFRAG" loaded.csv | cut -c1-110
"$CUFRAG" explain loaded.csv | tail -2 | cut -c1-110
sed 's/$/\r/' uuid.csv | { printf '\377\376'; sed 's/./&\x00/g' | tr '\n' '\001' | sed 's/\x01/\n\x00/g'; } > wide.csv
say wide.csv
# a night that stands, and one spike of it, by the clock of the log; a rise that stays is none
awk 'BEGIN { print "timestamp, index, memory.used [MiB]"
	for (i = 0; i < 480; i++) printf "2026/11/30 %02d:%02d:00.000, 0, %d MiB\n", i / 60, i % 60, (300 <= i && i < 340 ? 20690 : 11470) }' > night.csv
"$CUFRAG" night.csv | head -1
head -341 night.csv > rise.csv && "$CUFRAG" rise.csv | head -1
# two runs, idle between them: each grows, and the last one counts; a card that fills up in days
runs() { # FILE PACE LENGTHS: in MiB and minutes
	awk -v pace="$2" -v lengths="$3" 'BEGIN { print "timestamp, memory.used [MiB], memory.total [MiB]"; n = split(lengths, l, " ")
		for (k = 1; k <= n; k++) for (i = 0; i < l[k] + 5 * (k < n); i++) printf "2026/11/30 %02d:%02d:00.000, %d MiB, 40960 MiB\n",
			t / 60, t++ % 60, i < l[k] ? 8000 + pace * i : 5 }' > "$1" && "$CUFRAG" "$1" | sed -n '1s/. A log.*//p'
}
runs equal.csv 100 '120 120'
runs shorter.csv 100 '240 40'
runs died.csv 100 '240 5'
runs slow.csv 1 480
# started again before a sample saw the card idle: each run grows; half of it given back is none
again() { awk -v from="$1" 'BEGIN { print "time_s,used_mib"; for (i = 0; i < 300; i++) print 5 * i "," from + 200 * (i % 100) }' > again.csv && "$CUFRAG" again.csv | cut -c1-180 | head -1; }
again 3000
sed 's/time_s,used/step,allocated/' again.csv > steps.csv && "$CUFRAG" steps.csv | head -1
again 30000
# of one table, who holds most; by a pipe, too, as is an error
head -8 table.txt > one.txt && "$CUFRAG" one.txt | grep answer
cat one.txt | "$CUFRAG" - | tail -2
echo 'CUDA out of memory. Tried to allocate 2.00 GiB' | "$CUFRAG" /dev/stdin | cut -c1-60
"$CUFRAG" diagnose --quiet - < again.csv | head -1
"$CUFRAG" - < /dev/null 2>&1; mkfifo f && { cat one.txt > f & "$CUFRAG" f | tail -1; }
head -c 300000000 /dev/zero | "$CUFRAG" - 2>&1 || echo "exit $?"
