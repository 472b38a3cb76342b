# notes are on standard error: fewer with --quiet, more with --verbose; results are the same; errors are always said
for how in '' --quiet --verbose; do
	"$CUFRAG" import "$TRACES/seeddemo.default.cft" -o - $how > out 2> err
	echo "${how:-as it is}: $(grep -c ' events$' err) notes, $(grep -c 'format torch-snapshot' err) formats, $(grep -cE 'device 0: .*identical' err) verdicts"
	cksum out >> sums
done
sort -u sums | wc -l
"$CUFRAG" import none.cft -o - --quiet 2>&1
