# to a file: nothing on standard output, and the same bytes as on it
"$CUFRAG" list gpus --json gpus.json && "$CUFRAG" list gpus --json - | cmp - gpus.json && ls
