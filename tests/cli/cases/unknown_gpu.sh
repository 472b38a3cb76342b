"$CUFRAG" verify x --gpu h20
