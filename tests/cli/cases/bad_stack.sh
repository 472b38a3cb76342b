# sixty thousand lists side by side on the stack
{ printf '\200\004'; head -c 60000 /dev/zero | tr '\0' ']'; printf '.'; } > deep.pickle
"$CUFRAG" import deep.pickle -o out.cft
status=$?
ls
exit $status
