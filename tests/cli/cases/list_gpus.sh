"$CUFRAG" list gpus | grep -E '^(name|h200) '
"$CUFRAG" list gpus --json - | grep -A 8 '"name": "h200"'
