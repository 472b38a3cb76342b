# each with its source and needs; hidden ones only with --all
"$CUFRAG" list policies > shown && "$CUFRAG" list policies --all > all
grep -cx skeleton shown; grep -cx skeleton all
for name in $(sed -n 's/^\([a-z0-9-]*\)$/\1/p' all); do
	"$CUFRAG" list policies "$name" > one || echo "$name: exit status $?"
	grep -q '^  source: .' one && grep -q '^  needs: .' one || echo "$name: source or needs missing"
done
sed -n '/^short names/,$p' shown
