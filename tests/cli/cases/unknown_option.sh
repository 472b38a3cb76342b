"$CUFRAG" verify x --lmit 3
