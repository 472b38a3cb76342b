"$CUFRAG" verify x --capacity 100M
