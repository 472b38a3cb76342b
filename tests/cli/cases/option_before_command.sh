"$CUFRAG" --json - list gpus
