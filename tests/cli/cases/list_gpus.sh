"$CUFRAG" list gpus | grep -E '^(name|h200) '
"$CUFRAG" list gpus --json - | grep -A 4 '"name": "h200"'
