"$CUFRAG" help comparre
