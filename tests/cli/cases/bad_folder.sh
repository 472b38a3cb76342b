mkdir folder
"$CUFRAG" import folder -o out.cft
status=$?
ls
exit $status
