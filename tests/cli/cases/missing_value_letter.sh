"$CUFRAG" import x -o
