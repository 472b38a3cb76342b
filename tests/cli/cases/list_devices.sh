"$CUFRAG" list devices
