"$CUFRAG" list gpus h200
