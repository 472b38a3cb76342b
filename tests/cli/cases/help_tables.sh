# the option tables of every command are sound: help looks at them
for name in $("$CUFRAG" --help | sed -n '/^Examples/q; s/^  \([a-z][a-z]*\)  .*/\1/p'); do
	"$CUFRAG" help "$name" > help && "$CUFRAG" "$name" --help > same && cmp help same
done
# options for measurements on cards are in the help of those who ask for all, and nowhere else
"$CUFRAG" help compare --all | grep -q -- '--against-sim=FILE' || echo 'not in --all'
! "$CUFRAG" compare --help | grep -- --against-sim
! "$CUFRAG" help compare --format man | grep -F 'against\-sim'
! "$CUFRAG" help --format bash | grep -- --against-sim
