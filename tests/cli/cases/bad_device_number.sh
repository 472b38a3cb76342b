"$CUFRAG" replay x --device cuda:x
