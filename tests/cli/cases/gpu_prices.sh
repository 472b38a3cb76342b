# whose driver prices a simulated card has is said wherever times are: text, JSON and the page
for card in h200 l4; do
	"$CUFRAG" replay "$TRACES/seeddemo.default.cft" --gpu $card --json one.json | sed -n 3p
	tr -d ' \n' < one.json | grep -o '"cost_[a-z]*":[^,}]*' | sort -u
	"$CUFRAG" compare "$TRACES/seeddemo.default.cft" --gpu $card --policies pytorch --optimum off --formats svg --out page$card > /dev/null
	grep -oh "modelled from measurements of [^,]*" page$card/report.html | head -n 1
done
printf 'call,bytes,ns\ncudaMalloc,0,834\n' > own.csv
"$CUFRAG" replay "$TRACES/seeddemo.default.cft" --gpu l4 --cost own.csv | sed -n 3p
# the prices that are built in are the committed ones
for card in h100 h200; do
	for prices in '' "--cost $ROOT/results/$card/profile.csv"; do
		"$CUFRAG" compare "$TRACES/leak.frames.cft" --policies all --gpu $card $prices --json - |
			grep '"modelled_ns"' > "${prices:+file}.ns"
	done
	cmp .ns file.ns && wc -l < .ns
done
