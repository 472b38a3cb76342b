# whose driver prices a simulated card has is said wherever times are: text, JSON and the page
for card in h200 l4; do
	"$CUFRAG" replay "$TRACES/seeddemo.default.cft" --gpu $card --json one.json | sed -n 3p
	tr -d ' \n' < one.json | grep -o '"cost_[a-z]*":[^,}]*' | sort -u
	"$CUFRAG" compare "$TRACES/seeddemo.default.cft" --gpu $card --policies pytorch --optimum off --out page$card > /dev/null
	grep -oh "modelled from measurements of [^,]*" page$card/report.html | head -n 1
done
printf 'call,bytes,ns\ncudaMalloc,0,834\n' > own.csv
"$CUFRAG" replay "$TRACES/seeddemo.default.cft" --gpu l4 --cost own.csv | sed -n 3p
