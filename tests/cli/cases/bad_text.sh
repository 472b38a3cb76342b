echo 'this is no trace at all' > text
"$CUFRAG" import text -o out.cft
status=$?
ls
exit $status
