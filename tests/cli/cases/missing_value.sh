"$CUFRAG" verify x --limit
