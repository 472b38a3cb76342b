"$CUFRAG" verify x --limit 8GB
