"$CUFRAG" verfy x
