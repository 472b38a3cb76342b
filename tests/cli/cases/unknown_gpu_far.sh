"$CUFRAG" verify x --gpu zx81
