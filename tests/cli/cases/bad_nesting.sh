# sixty thousand lists, each in the next
{
	printf '\200\004'
	head -c 60000 /dev/zero | tr '\0' ']'
	head -c 59999 /dev/zero | tr '\0' a
	printf '.'
} > deep.pickle
"$CUFRAG" import deep.pickle -o out.cft
status=$?
ls
exit $status
