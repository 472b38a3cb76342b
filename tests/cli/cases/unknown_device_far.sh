"$CUFRAG" replay x --device tpu
