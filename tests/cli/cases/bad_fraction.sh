"$CUFRAG" verify x --limit 1.5
