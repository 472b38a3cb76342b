# each kind: the same bytes for the same seed, others for another, and the bound is the peak of what is live, in 512 B
bytes() { sed -n "s/.*\"$1\": \([0-9]*\),*/\1/p" bounds.json; }
for kind in comb sawtooth robson above powerlaw pipeline kvgrow repack mixed; do
	"$CUFRAG" gen $kind --seed 7 -o one.cft --json bounds.json > /dev/null && "$CUFRAG" gen $kind --seed 7 -o again.cft > /dev/null
	cmp one.cft again.cft
	peak=$("$CUFRAG" export one.cft --to csv 2> /dev/null | awk -F, '{ n = int(($6 + 511) / 512) * 512 }
		$5 == "alloc" { live += n; if (live > peak) peak = live }
		$5 == "free" || $5 == "free_completed" { live -= n }
		END { printf "%.0f", peak }')
	echo "$kind: $(($(bytes lower_bound_bytes) - peak)), placed above it: $(($(bytes placed_bytes) >= peak))"
done
"$CUFRAG" gen mixed --seed 8 -o other.cft > /dev/null && cmp -s one.cft other.cft && echo "the seed does not count"
# a scale is as much more
"$CUFRAG" gen kvgrow --scale 2 -o - 2> /dev/null | "$CUFRAG" info - | grep '^  events'
"$CUFRAG" gen comb -o comb.cft | sed 's/, [0-9.]* bytes.*//'
# bad words
for words in comd 'comb x.cft' 'comb --times 2' 'comb --scale 0' 'comb --scale 1001'; do
	"$CUFRAG" gen $words -o x.cft; echo "exit $?"
done
[ ! -e x.cft ]
