"$CUFRAG" --help
