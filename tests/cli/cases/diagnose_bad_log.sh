printf 'timestamp, memory.used [MiB]\nnow, [N/A]\n' > empty.csv
"$CUFRAG" diagnose empty.csv
