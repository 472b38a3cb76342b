"$CUFRAG" verify
