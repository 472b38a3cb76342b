"$CUFRAG" frobnicate
