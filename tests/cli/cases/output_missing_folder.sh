"$CUFRAG" list gpus --json no/such/folder/x.json
status=$?
ls
exit $status
