: > empty
"$CUFRAG" import empty -o out.cft
status=$?
ls
exit $status
