"$CUFRAG" verify x --gpu h2000
