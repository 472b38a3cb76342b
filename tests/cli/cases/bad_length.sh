# a string that claims 2^62 bytes
printf '\200\004}\215\000\000\000\000\000\000\000\100abc.' > long.pickle
"$CUFRAG" import long.pickle -o out.cft
status=$?
ls
exit $status
