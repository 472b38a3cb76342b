"$CUFRAG" list gpus --limit 3
