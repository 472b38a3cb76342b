# Programs with planted defects: every verdict, and every line that is to blame.
[ -d "$SHARED/diagnose" ] || { echo "no recordings of planted defects" >&2; exit 77; }
for f in "$SHARED"/diagnose/*.pickle.xz; do
	truth=${f%.pickle.xz}.json
	"$CUFRAG" diagnose "$f" > out || [ $? = 6 ] || exit 1 # 6: it ended out of memory
	printf '%s: %s' "$(basename "$f" .a.pickle.xz)" "$(sed -n '1s/verdict: //p' out)"
	grep -q "\"verdict\": \"$(sed -n '1s/verdict: //p' out)\"" "$truth" || printf ' WRONG'
	tr -d '\n' < "$truth" | grep -o '"culprit_lines": \[[^]]*' | grep -o '[0-9]\+' | while read -r line; do
		if grep -q "^  at diag.py:$line " out; then printf ' line %s' "$line"; else printf ' MISSING %s' "$line"; fi
	done
	echo
done
