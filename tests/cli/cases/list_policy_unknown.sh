"$CUFRAG" list policies buddi
