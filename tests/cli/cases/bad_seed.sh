"$CUFRAG" replay x --seed -1
