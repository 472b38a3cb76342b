# a recording speaks for cards of the compute capability that it was made on; on others another kernel choice is likely
printf 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"\n' > program
"$CUFRAG" record --no-gpu --gpu l4 -o l4.cft -- sh program > /dev/null
"$CUFRAG" record --no-gpu --gpu b200 --capacity 8G -o b200.cft -- sh program > /dev/null
"$CUFRAG" fit l4.cft --policy pytorch 2> /dev/null | sed -n '3p; /only if/p; /^answer/p; /^card/,$p' | cut -c -108
"$CUFRAG" fit l4.cft --policy pytorch --csv - 2> /dev/null | cut -d, -f 9-
"$CUFRAG" fit l4.cft --policy pytorch --json - 2> /dev/null | grep -E '"(recorded_for_it|smaller_card)"' | sort | uniq -c
"$CUFRAG" fit b200.cft --policy pytorch --brief 2> /dev/null
# none of its capability has room: the others, with a word
printf 'name,memory\nt4,15G\nmine,20G\n' > cards.csv
printf 'name,memory\nt4,15G\nrtx3090,24G\n' > others.csv
"$CUFRAG" fit l4.cft --policy pytorch --cards cards.csv --brief 2> /dev/null
"$CUFRAG" fit l4.cft --policy pytorch --cards others.csv --brief 2> /dev/null; echo "exit $?"
# a snapshot with its card beside it; a recording that does not say
cp "$DATA/seeddemo.pickle.xz" run.pickle.xz
printf '{"cufrag_meta": 1, "devices": [{"ordinal": 0, "name": "NVIDIA A100-SXM4-40GB", "total_bytes": 42298834944}]}' > run.pickle.xz.meta.json
"$CUFRAG" fit run.pickle.xz --policy pytorch | grep -E '^# rec|^answer|^(t4|a100-40|a100-80) '
rm run.pickle.xz.meta.json
"$CUFRAG" fit run.pickle.xz --policy pytorch | grep -E '^# the rec|^answer|^(t4|a100-40|a100-80) '
# a .cft keeps the card, so every command says when it is asked about one of another capability, where another kernel choice is likely
printf '{"cufrag_meta": 1, "devices": [{"ordinal": 0, "name": "NVIDIA A100-SXM4-40GB", "total_bytes": 42298834944, "context_bytes": 500000000, "beside_bytes": 700000000}]}' > run.pickle.xz.meta.json
"$CUFRAG" import run.pickle.xz -o kept.cft > /dev/null
for f in run.pickle.xz kept.cft; do "$CUFRAG" fit $f --policy pytorch 2> /dev/null | sed 's/^# cufrag.*//' > $f.fit; done
cmp run.pickle.xz.fit kept.cft.fit && grep -c 'outside of the allocator' kept.cft.fit
for c in compare tune diagnose explain fit; do
	"$CUFRAG" $c kept.cft --gpu t4 > out 2>&1; echo "$c: $(grep -c 'recorded on NVIDIA A100.*t4 is of another compute capability' out)"
	"$CUFRAG" $c kept.cft --gpu a100-80 > out 2>&1; grep 'is of another compute capability' out
done
"$CUFRAG" compare kept.cft --policy pytorch | grep -o 'if the program needs no more there.*'
"$CUFRAG" sweep kept.cft --policies pytorch -o k.sqlite > /dev/null 2>&1
"$CUFRAG" fleet k.sqlite | grep 'another compute capability'
"$CUFRAG" fleet k.sqlite --json - | grep '"other_kernels"'
