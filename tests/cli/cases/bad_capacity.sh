"$CUFRAG" verify x --capacity lots
