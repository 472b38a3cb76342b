"$CUFRAG" list formats
