# layouts of a command: bisection along what rises, several cards, reasons other than memory told
# apart, a time limit, presets, conditions; a shell that leaves a recording stands for PyTorch
. "$DATA/made.sh"
cat > program << 'END'
mb=$1 ac=$2
[ "$mb-$3" != 7-fails ] || { echo "ValueError: seven is no batch" >&2; exit 9; }
[ "$mb-$3" != 7-hangs ] || sleep 100
[ "$3" != never ] || { echo "no such model" >&2; exit 9; }
gib=$((mb * 10))
[ "$3" != odd ] || [ "$mb" != 2 ] || gib=200
[ "$ac" != full ] || gib=$((gib / 2))
[ "$3" != adapts ] || [ "${CUFRAG_PRETEND#total=1099511627776;}" != "$CUFRAG_PRETEND" ] || gib=$((gib + 40))
printf 'alloc,1,%d\nfree,1\n' $((gib << 30)) > "$CUFRAG_RECORD/1.pickle"
echo "$mb $ac" >> ran
END
layout() {
	rm -f ran
	"$CUFRAG" layout --keep-writes --jobs 1 --csv rows.csv "$@" > out 2> err; echo "exit $?"
	grep -E '^(answer|assumed|.* (failed|was ended), not|.* itself|[a-z0-9-]*: sh)' out
	[ ! -e ran ] || echo "ran $(wc -l < ran)"
}
layout --gpu h100,h200 --vary '{mb}=1..32' --vary '{ac}=none,full' -- sh program '{mb}' '{ac}' ''
cut -d, -f 1,3-7,9 rows.csv | grep -E '^(card|h[12]00,mb=(7|8|14|15) )'
cut -d, -f 1,3,13-20 rows.csv | grep -E '^(card|h100,mb=7 ac=none)' # without steps its phase is unknown
layout --gpu h100,h200 --vary '{mb}=1..32' --vary '{ac}=none,full' -- sh program '{mb}' '{ac}' '' | tail -1 # they are kept
layout --gpu a100-80 --vary '{mb}=7,8' --vary '{ac}=none,full' --where 'mb != 8 || ac == "full"' -- sh program '{mb}' '{ac}' fails
layout --gpu a100-80 --vary '{mb}=7,8' --time-limit 5 -- sh program '{mb}' full hangs
# what the program starts ends with it, also in a session of its own, whose parent may have ended
cat > leaves << 'END'
(setsid sh -c 'while :; do echo > alive-$0; sleep 0.05; done' $1 > /dev/null 2>&1 &)
[ $1 = ends ] || sleep 100
until [ -e alive-ends ]; do sleep 0.01; done
printf 'alloc,1,512\nfree,1\n' > "$CUFRAG_RECORD/1.pickle"
END
layout --gpu h100 --vary '{x}=ends,waits' --time-limit 5 --check 0 -- sh leaves '{x}'
rm alive-*; sleep 0.3; ls alive-* 2> /dev/null || echo "nothing is left"
layout --gpu a100-80 --vary '{mb}=1..32' --vary '{ac}=none,full' -- sh program '{mb}' '{ac}' never
layout --gpu h100 --vary '{mb}=1..5' --check 9 -- sh program '{mb}' none odd
layout --gpu h100 --vary '{mb}=1..5' -- sh program '{mb}' none adapts
layout --gpu h100 --fresh --vary '{mb}=1..5' -- sh program '{mb}' none adapts
layout --gpu l4 --vary '{n}=40' --keep kept -- sh program '{n}' '{{ac}}' ''
ls kept; "$CUFRAG" info kept/*.cft 2> /dev/null | grep -c 'peak live'
# options of a launcher: replaced, added, words of their own
"$CUFRAG" layout --preset megatron --vary tp=1 --vary mb=2 --vary ac=none,full --gpu h200 --check 0 --csv - -- \
	sh -c 'printf "alloc,1,512\nfree,1\n" > "$CUFRAG_RECORD/1.pickle"' sh --micro-batch-size=7 --bf16 2> /dev/null | sed 's/.*sh //'
# a serving engine: the size of its cache is what it prints, its GPUs are its degrees; one that prints none failed
cat > engine << 'END'
[ "$1-$2" = 4-silent ] || echo "INFO GPU KV cache size: $(($1 * 444)),864 tokens"
printf 'alloc,1,%d\nfree,1\n' $((76 << 30)) > "$CUFRAG_RECORD/1.pickle"
END
for users in 54 55 300; do
	layout --gpu h100,l4 --vary '{tp}=1,2,4' --requests $users --tokens 8192 -- sh engine '{tp}' silent
done
cut -d, -f 1-5,26,27 rows.csv
layout --gpu h100 --vary '{tp}=1' --requests 3 -- sh engine '{tp}' ''
layout --gpu h100 --vary '{tp}=1,32' --requests 3 --tokens 9 -- sh engine '{tp}' ''
cat err
# as it serves: it waits for requests, and is asked to end; what it says of its memory; one that says that the card is too small does not fit
cat > vllm << 'END'
#!/bin/sh
shift
while [ $# -gt 0 ]; do case $1 in --tensor-parallel-size) tp=$2 ;; --tensor-parallel-size=*) tp=${1#*=} ;; esac; shift; done
[ "$tp" != 0 ] || exit 2
[ "$tp" != 1 ] || { echo "ValueError: No available memory for the cache blocks. Try less"; exit 1; }
printf 'alloc,1,%d\nfree,1\n' $((76 << 30)) > "$CUFRAG_RECORD/1.pickle"
echo "Model loading took 14.5 GiB and 1 seconds"
echo "Available KV cache memory: 55.5 GiB"
echo "GPU KV cache size: $((tp * 444)),864 tokens"
echo "Graph capturing finished in 5 secs, took 0.5 GiB"
echo "INFO:     Application startup complete."
trap 'touch ended-$tp; exit 0' TERM
for _ in $(seq 300); do sleep 0.1; done
END
chmod +x vllm
cat > sglang << 'END'
#!/bin/sh
printf 'alloc,1,%d\nfree,1\n' $((76 << 30)) > "$CUFRAG_RECORD/1.pickle"
echo "max_total_num_tokens=444864, x"; echo "Uvicorn running on x"
trap 'exit 0' TERM
for _ in $(seq 300); do sleep 0.1; done
END
chmod +x sglang
rm -f out; "$CUFRAG" layout --keep-writes --serve --jobs 1 --gpu h100 --requests 100 --tokens 8192 --csv rows.csv -- ./vllm serve model > out 2> err; echo "exit $?"
grep -E '^(answer|h100: )' out; grep -o 'kept free.*' out; ls ended-*; cut -d, -f 1-5,9-10,24,26-30 rows.csv
"$CUFRAG" layout --keep-writes --serve --requests 100 --tokens 8192 -- sh engine 2> err || sed 's/; try.*//' err
# degrees that the command has count, too: two cards; two engines have two caches, and SGLang's share the cards if told to
serve() {
	rm -f out; "$CUFRAG" layout --keep-writes --serve --jobs 1 --gpu h100 --requests 100 --tokens 8192 --csv rows.csv "$@" > out 2> err; echo "exit $?"
	grep -E '^answer' out; cut -d, -f 2-4,26,27 rows.csv
}
serve --vary memory=0.9 -- ./vllm serve model --tensor-parallel-size=2
serve --vary tp=3 -- ./vllm serve model -dp 2
serve --vary tp=2 -- env "PATH=.:$PATH" sglang --dp 2 --enable-dp-attention
# too small, all of them; and one that failed for another reason
serve --vary tp=1 -- ./vllm serve model
serve --vary tp=0,1 -- ./vllm serve model
# one whose first process waits for ever: the others are asked, too
cat > engine << 'END'
(trap 'printf "alloc,1,512\nfree,1\n" > "$CUFRAG_RECORD/1.pickle"; exit' TERM; while :; do sleep 0.1; done) &
trap '' TERM; echo "INFO GPU KV cache size: 444,864 tokens"; echo "Application startup complete"
wait
END
rm -f out; timeout 28 "$CUFRAG" layout --keep-writes --serve --jobs 1 --gpu h100 --requests 1 --tokens 8192 --vary tp=1 -- sh engine vllm serve > out 2> err; echo "exit $?"
grep -E '^answer' out
# no folder for the page: said before anything runs. A page that cannot be written: the answer is given, the status says so
touch file; mkdir -p page/layout.html
for out in file/page page; do
	layout --gpu l4 --vary '{mb}=1' --out $out -- sh program '{mb}' none ''
	sed 's/:.*//' err | tail -1
done
# kept recordings are a batch for sweep, and its results for fleet
layout --gpu h100,l4 --vary '{mb}=1..3' --check 9 --keep batch -- sh program '{mb}' none ''
ls batch
"$CUFRAG" sweep batch -o results.sqlite --policies pytorch > /dev/null 2>&1; echo "sweep $?"
"$CUFRAG" fleet results.sqlite > out 2> err; echo "fleet $?"
# interrupted in the middle: what is known so far
cat > slow << 'END'
[ "$1" = 1 ] || { touch waits; sleep 100; }
printf 'alloc,1,512\nfree,1\n' > "$CUFRAG_RECORD/1.pickle"
END
env --default-signal=INT "$CUFRAG" layout --keep-writes --jobs 1 --gpu h100 --vary '{n}=1,2' -- sh slow '{n}' > out 2> err &
soon test -e waits
kill -INT $!; wait $!; echo "exit $?"
grep -E '^(answer|h100: )|Interrupted' out; tail -1 err
# as timeout does it, which asks the process and then its group
for s in TERM INT; do
	rm waits; env --default-signal=INT "$CUFRAG" layout --keep-writes --jobs 1 --gpu h100 --vary '{n}=1,2' -- sh slow '{n}' > out 2> err &
	soon test -e waits
	kill -$s $!; sleep 0.02; kill -$s $!; wait $!; echo "exit $?"
	grep -E '^(answer|h100: )' out
done
# an array job: each shard keeps its recordings; then the same command takes them all, and writes the results for fleet
for i in 0 1; do
	SLURM_ARRAY_TASK_ID=$i layout --gpu h100 --vary '{mb}=1..4' --vary '{ac}=none,half,full' --keep array --shard /2 -- sh program '{mb}' '{ac}' ''
done
layout --gpu h100 --vary '{mb}=1..4' --vary '{ac}=none,half,full' --keep array --shard all --store array.sqlite -- sh program '{mb}' '{ac}' ''
sed 's|^cufrag layout: ||' err | tail -1
ls array | wc -l; "$CUFRAG" fleet array.sqlite 2> err | sed -n '/^#/p;/^answer/p'
layout --gpu h100 --vary '{mb}=1..4' --vary '{ac}=none,full' --keep array --shard all -- sh program '{mb}' '{ac}' none
cat err
layout --gpu h100 --vary '{mb}=1..4' --store new.sqlite -- sh program '{mb}' none ''
cat err
layout --gpu h100 --vary '{mb}=1..4' --shard 4/4 -- sh program '{mb}' none ''
cat err
