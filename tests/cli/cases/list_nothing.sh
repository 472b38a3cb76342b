"$CUFRAG" list
