"$CUFRAG" replay x --threads 0
