# a recording whose last request was refused is a lower bound: every answer says so, and the status is 6. What was caught and
# overcome is none, whatever was refused; what the handler of an error allocates changes nothing.
printf 'alloc,1,4294967296\nalloc,2,4294967296\nalloc,3,1073741824\nfree,3\nrefused,4,8589934592\nfree,2\nfree,1\n' > died.csv
printf 'alloc,1,4294967296\nrefused,4,8589934592\nalloc,5,4294967296\nalloc,6,4294967296\nfree,5\nfree,6\nfree,1\n' > caught.csv
printf 'alloc,1,4294967296\nrefused,4,8589934592\nalloc,5,512\nfree,5\nfree,1\n' > handler.csv
printf 'alloc,1,4294967296,0,0,0\nalloc,2,4294967296,0,0,1\nrefused,3,8589934592,0,0,1\nalloc,4,8589934592,0,0,0\n' > head
(echo action,id,size,stream,time_us,device; cat head) > ranks.csv
for f in died caught handler ranks; do
	for c in info summary diagnose fit compare tune plan replay; do
		"$CUFRAG" $c $f.csv $([ $c != replay ] || echo --policy pytorch) > out 2> err
		echo "$f $c: exit $?$(sed -n 's/^\(the need is\)/, \1/p' out)"
	done
done
"$CUFRAG" fit "$TRACES/oomcap.default.cft" --policy pytorch > out; echo "oomcap: exit $?, $(grep -c unknown out)"
# the same from a .cft, which is read in batches
"$CUFRAG" import died.csv -o died.cft > /dev/null
"$CUFRAG" compare died.cft --stream --policy pytorch | grep -E 'need|answer'
"$CUFRAG" info - < died.cft | head -1
# cards that are too small for what is known are ruled out; the others are unknown; no card large enough: 1
"$CUFRAG" fit died.csv --policy pytorch | sed -n '/^the need/p; /^answer/p; /^card/,$p' | cut -c -34
"$CUFRAG" fit died.csv --policy pytorch --csv - | cut -d, -f 3-
printf 'name,memory\nsmall,12G\n' > cards.csv
"$CUFRAG" fit died.csv --policy pytorch --cards cards.csv --brief; echo "exit $?"
"$CUFRAG" fit died.csv --policy pytorch --json - | grep -A6 -m1 ended_out
# a sweep passes it on
"$CUFRAG" sweep died.csv caught.csv --policies pytorch -o r.sqlite > /dev/null 2>&1
"$CUFRAG" fleet r.sqlite > out; echo "fleet: exit $?"; grep -E '^answer|unknown' out
"$CUFRAG" fleet r.sqlite --json - | grep -E '"(job|ended_out_of_memory)"'
