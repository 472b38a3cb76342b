# 500 requests, as vLLM 0.22.1's own scheduler treats them: blocks in use, requests that run and
# that wait in all steps together; groups of layers, prompts in parts, drafts, a shared prefix that
# is evicted under pressure
awk 'function next_() { return x = x * 16807 % 2147483647 }
	BEGIN { for (x = 1; i < 500; i++) print int(i / 4) "," 280 + next_() % 320 "," 1 + next_() % 70 }' > r.csv
replay() { # BLOCKS STEP PREFIX OPTION...
	blocks=$1 step=$2 prefix=$3; shift 3
	"$CUFRAG" kvcache "$@" --csv - --batched-tokens "$step" --arrivals r.csv --step 1000000 ${prefix:+"$prefix"} |
		awk -F, -v b="$blocks" 'NR > 1 { u += int($2 * b + 0.5); r += $3; w += $4; p += $5 }
			END { print NR - 1, "steps:", u, "blocks,", r, "run,", w, "wait,", p, "preemptions" }'
}
while read -r layers blocks step prefix; do
	replay "$blocks" "$step" "$prefix" --block "$layers" --cache-tokens $((blocks * ${layers%%,*}))
done << END
16 1500 67108864
16 1500 700
16,full,window=128 2000 2048
16,full,window=300*5 6000 2048
64,full,state*3 700 2000
64,full*2,state*3,draft=2 1100 4096
16 1200 2048 --prefix=256
16,full,window=128 1500 700 --prefix=256
16,full,window=300*5 4500 2048 --prefix=256
16,window=1000,full,window=128 1900 700 --prefix=300
64,full,window=300*2 560 2048 --prefix=256
16,window=300 800 512 --prefix=256
16,full,window=128,draft=3 1500 600 --prefix=256
16,full,window=128 2000 700 --prefix=1
END
# blocks of full attention hold 2 or 4 times the tokens of a window's, with as many bytes
while read -r times window blocks step prefix; do
	printf '{"num_hidden_layers":2,"num_attention_heads":%d,"head_dim":64,"sliding_window":%d,
		"num_global_key_value_heads":1,"sliding_window_pattern":2}' "$times" "$window" > c
	replay "$blocks" "$step" "$prefix" --model c --cache-memory $((blocks * times * 4096))
done << END
2 300 1500 700
2 300 900 2048 --prefix=300
4 128 1500 2048 --prefix=256
4 20 900 512 --prefix=256
END
