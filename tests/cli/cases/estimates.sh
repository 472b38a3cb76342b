# every command says of a recording made without a GPU that it is an estimate: in its text, its JSON and its page
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"' > /dev/null
for c in info verify fit plan explain diagnose compare replay tune 'diff run.cft'; do
	$CUFRAG $c run.cft --json file.json > text 2> notes
	echo "$c: text $(grep -c estimate text), note $(grep -c estimate notes), JSON $(grep -cE '"estimated?": (true|\{)' file.json)"
done
for c in explain 'diff run.cft' compare; do
	rm -rf page
	$CUFRAG $c run.cft --out page > /dev/null 2>&1
	echo "$c: $(cd page && grep -l 'an estimate' *.html)"
done
