for command in info verify replay compare "import -o out.cft"; do
	"$CUFRAG" $command no-such-file
	echo "$command: $?"
done
ls
