# every command: its most common line, usage, another example, all on standard output
names=$("$CUFRAG" help --format names)
for name in $names; do
	"$CUFRAG" help "$name" > same # and the option tables are sound
	COLUMNS=80 "$CUFRAG" "$name" --help > help && cmp help same || echo "$name: exit status $?"
	[ "$(wc -l < help)" -le 40 ] || echo "$name: its help is longer than a screen"
	head -n 1 help | grep -q "^  .*cufrag $name" || echo "$name: does not open with an example"
	sed -n 3p help | grep -q "^Usage: cufrag $name" || echo "$name: no usage"
	grep -q 'cufrag help options$' help || echo "$name: no word on the options of every command"
	"$CUFRAG" "$name" --help all > help || echo "$name: exit status $?"
	sed '1,/^More examples:/d' help | grep -q "cufrag $name " || echo "$name: no second example"
	awk 'length > 100 { print FILENAME ": long line: " $0 }' help
done
# the list of them has each once
for name in $names; do
	n=$("$CUFRAG" --help | grep -c "^  $name  ")
	[ "$n" -eq 1 ] || echo "$name stands $n times in the list"
done
