"$CUFRAG" replay x --device cida
