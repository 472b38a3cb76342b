"$CUFRAG" list gpus a b
