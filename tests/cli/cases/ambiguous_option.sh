"$CUFRAG" verify --c x y
