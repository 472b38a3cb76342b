# a disk that is full is exit status 5, whatever the command
"$CUFRAG" list metrics > /dev/full
