# a million lists, each in the next
{
	printf '\200\004'
	head -c 1000000 /dev/zero | tr '\0' ']'
	head -c 999999 /dev/zero | tr '\0' a
	printf '.'
} > deep.pickle
"$CUFRAG" import deep.pickle -o out.cft
status=$?
ls
exit $status
