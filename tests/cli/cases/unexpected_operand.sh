"$CUFRAG" verify x y
