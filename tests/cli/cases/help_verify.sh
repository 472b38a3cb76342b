"$CUFRAG" verify --help
