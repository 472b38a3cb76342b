"$CUFRAG" verify --counters=3 x
