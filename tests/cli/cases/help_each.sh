# every command: usage, two examples at least, all on standard output
names=$("$CUFRAG" --help | sed -n '/^Examples/q; s/^  \([a-z][a-z]*\)  .*/\1/p')
for name in $names; do
	"$CUFRAG" "$name" --help > help || echo "$name: exit status $?"
	head -n 1 help | grep -q "^Usage: cufrag $name" || echo "$name: no usage"
	grep -q -- '--help  *print this help' help || echo "$name: no --help"
	n=$(sed '1,/^Examples:/d' help | grep -c "cufrag $name ")
	[ "$n" -ge 2 ] || echo "$name: $n examples"
	awk 'length > 90 { print FILENAME ": long line: " $0 }' help
done
for name in info import verify replay compare list; do
	echo "$names" | grep -qx $name || echo "$name is missing"
done
