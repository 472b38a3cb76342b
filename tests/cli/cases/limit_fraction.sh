# the integer part of fraction x total, as torch.cuda.set_per_process_memory_fraction has it
data=$DATA/seeddemo.pickle.xz
for limit in 0.09 0.2 .999999 1.0 0.9999999999999999 7.5G 8053063680; do
	"$CUFRAG" verify "$data" --limit $limit --json - | grep '^  "limit_bytes"' | sed "s/^ */$limit: /"
done
"$CUFRAG" verify "$data" --gpu l4 --limit 0.5 --json - | grep '^  "limit_bytes"'
"$CUFRAG" verify "$data" --capacity 20G --limit 0.5 --json - | grep '^  "limit_bytes"'
