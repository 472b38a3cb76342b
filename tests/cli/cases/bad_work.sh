"$CUFRAG" replay x --work busy
