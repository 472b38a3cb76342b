# The logs that people have: nvidia-smi with and without units, dmon, any CSV with time and bytes.
say() { "$CUFRAG" diagnose "$1" | sed -n '1p;3,4p'; }
{ echo 'timestamp, index, memory.total [MiB], memory.used [MiB]'
	for i in $(seq 10 59); do echo "2026/01/02 03:$i:00.000, 0, 81559 MiB, $((1000 + 50 * i)) MiB"
		echo "2026/01/02 03:$i:00.000, 1, 81559 MiB, 900 MiB"; done; } > units.csv
say units.csv
{ echo 'timestamp, memory.used [MiB]'; for i in $(seq 10 59); do echo "2026/01/02 03:04:$i.000, 4711"; done; } > nounits.csv
say nounits.csv
{ for i in $(seq 10 59); do [ $((i % 20)) = 10 ] && printf '# gpu     fb   bar1   ccpm\n# Idx     MB     MB     MB\n'
	printf '    0  %5d      4      -\n    1      -      4      -\n' $((2000 + 30 * i)); done; } > dmon.txt
say dmon.txt
{ echo 'time_s,live_mib'; for i in $(seq 10 59); do echo "$i,$((i < 30 ? 100 * i : 3000))"; done; } > own.csv
say own.csv
