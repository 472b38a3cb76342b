"$CUFRAG" verify -x y
