"$CUFRAG" list polices
