"$CUFRAG" list trees
