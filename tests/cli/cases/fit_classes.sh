# a program is recorded for each compute capability among the cards, where memory ends it once more
# with enough of it, and at last on the card that is advised. Here a shell that leaves a recording
# stands for PyTorch; on Turing it needs 16 GiB.
printf 'alloc,1,17179869184\nfree,1\n' > large.csv && printf 'alloc,1,1048576\nrefused,2,17179869184\nfree,1\n' > died.csv
printf 'alloc,1,8589934592\nfree,1\n' > small.csv
printf 'alloc,1,85899345920\nfree,1\n' > huge.csv && printf 'alloc,1,1048576\nrefused,2,85899345920\nfree,1\n' > huge.died.csv
cat > program << 'END'
total=${CUFRAG_PRETEND#total=} total=${total%%;*} cc=${CUFRAG_PRETEND##*cc=} cc=${cc%%;*}
echo "$cc $((total >> 30))" >> cards
t=small status=0
[ "$1" != turing ] || [ $cc != 7.5 ] || t=large
[ "$1" != huge ] || t=huge
[ $t != large ] || [ $((total >> 30)) -ge 17 ] || t=died status=1
[ $t != huge ] || [ $((total >> 30)) -ge 81 ] || t=huge.died status=1
[ "$1" != fails ] || [ $cc != 8.9 ] || exit 9
cp "$t.csv" "$CUFRAG_RECORD/1.pickle"
exit $status
END
fit() {
	rm -f cards
	"$CUFRAG" fit --no-gpu --keep-writes --fresh --policy pytorch "$@" 2> err > out; echo "exit $?"
	sed -n '/^# recorded/p; /the need/p; /^answer/p; /^pytorch /p; /^card/,$p' out | cut -c -72
	echo "recorded: $(sort -V cards | tr '\n' ,)"
}
fit -- sh program turing
fit --gpu rtx3090 -- sh program huge
fit -- sh program fails | grep -E '^(exit|answer|l4|l40s|rtx|a10g)'
printf 'name,memory,price_per_hour\nl4,22528 MiB,0.3\nmine,40G,0.2\nt4,15G,0.1\n' > own.csv
fit --cards own.csv -- sh program turing
"$CUFRAG" fit --no-gpu --keep-writes --policy pytorch --csv - -- sh program turing 2> err | cut -d, -f 9-
# no card is enough: what would be
printf 'name,memory\nl4,22528 MiB\nt4,15G\n' > little.csv
fit --gpu l4 --cards little.csv -- sh program huge
# as with --csv above: nothing is recorded; after a change of what the program reads, all is
rm -f cards; "$CUFRAG" fit --no-gpu --keep-writes --policy pytorch --brief -- sh program turing > out 2> err; [ ! -e cards ] && cut -c -76 out && sed -n 's/on 20[^ ]* [^ ]* with/on DAY with/p' err
touch small.csv; "$CUFRAG" fit --no-gpu --keep-writes --policy pytorch --brief -- sh program turing > /dev/null 2>&1; [ -e cards ] && echo recorded again
