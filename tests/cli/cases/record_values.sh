# --values is checked before the program runs: it never starts with what it could not read
printf 'train.py:42 1 1 0 # three times\n\n# nothing\ntrain.py:50 -0.5e3\n' > good
printf 'train.py:42 0.5\ntrain.py:43 half\n' > word
printf 'train.py:42 nan inf 1\n' > nan
printf 'train.py:42 1\0\n' > zero
head -c 70000 /dev/zero | tr '\0' 7 > long
truncate -s 17M large
mkfifo pipe
for values in good word nan zero long large pipe . absent rule skewed=2 skewed=-1 skewed=inf skewed=; do
	echo "$values" >&2
	"$CUFRAG" record --no-gpu --gpu h100 --values "$values" -o run.cft -- sh -c 'printf "alloc,1,512\n" > "$CUFRAG_RECORD/1.pickle"'
	echo "exit $?"
done
