# the option tables of every command are sound: help looks at them
for name in $("$CUFRAG" --help | sed -n '/^Examples/q; s/^  \([a-z][a-z]*\)  .*/\1/p'); do
	"$CUFRAG" help "$name" > help && "$CUFRAG" "$name" --help > same && cmp help same
done
