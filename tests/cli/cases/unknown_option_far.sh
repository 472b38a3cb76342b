"$CUFRAG" verify x --frobnicate
