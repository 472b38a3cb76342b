"$CUFRAG" --version && "$CUFRAG" -V
