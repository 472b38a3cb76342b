# A training whose savings are computed by hand: four blocks, which save 100 MiB each and give 10,
# three steps, Adam with two states of 20 MiB for each of four weights, the largest gradient of 20
# MiB on top. Then recordings of anything.
frames() {
	awk -v OFS='\t' 'BEGIN { n = split("train.py <module> model.py forward torch/nn/modules/module.py _call_impl block.py forward block.py " \
			"forward torch/optim/adam.py _multi_tensor_adam torch/nn/functional.py cross_entropy " \
			"torch/nn/parallel/distributed.py _ddp_init_helper", w, " ")
		for (i = 1; i < n; i += 2) print "#frame 0x1" int(i / 2), w[i + 1], "/" w[i], ":" int(i / 2) + 1 }'
	printf '#stack %s\n' '1 0x13 0x12 0x11 0x10' '2 0x14 0x12 0x11 0x10' '3 0x15 0x10' '4 0x16 0x10' '5 0x10' '6 0x17 0x10'
}
training() { # $1: saved MiB of a block, $2: MiB of each of four buckets
	awk -v saves="${1:-100}" -v bucket="$2" 'function born(mib, stack) { print "alloc," ++id "," mib * 1048576 "," stack; return id }
		function gone(id) { print "free," id ",," }
		BEGIN {
			print "action,id,size,stack"
			for (i = 0; i < 4; i++) born(20, 5)
			for (i = 0; bucket && i < 4; i++) born(bucket, 6)
			for (step = 0; step < 3; step++) {
				for (i = 0; i < 4; i++) { saved[i] = born(saves, 1); t = born(4, 2); out[i] = born(10, 2); gone(t) }
				loss = born(1 / 2048, 4); gone(out[3])
				for (i = 4; i-- > 0;) { grad[i] = born(20, 0); gone(saved[i]); if (i) gone(out[i - 1]) }
				for (i = 0; !step && i < 8; i++) born(20, 3)
				for (i = 0; i < 4; i++) temp[i] = born(20, 3)
				for (i = 0; i < 4; i++) gone(temp[i])
				if (bucket) born(1 / 2048, 5)
				for (i = 0; i < 4; i++) gone(grad[i])
				gone(loss)
			} }'
}
{ frames; training; } > run.csv
"$CUFRAG" advise -q run.csv --json - | sed -n '/"changes"/q; s/"requested_bytes": /before: /p'
"$CUFRAG" advise -q run.csv --json - | awk -F'"' '$2 == "change" { name = $4 } $2 == "where" && name == "checkpoint" { print "at " $4 }
	$2 == "requested_bytes" { sub(/.*: /, ""); if (name) print name ": " $0 / 1048576 }' | sort
for bucket in 0 20; do # weights, buckets, states, temporaries, and gradients only where they lie beside the buckets
	{ frames; training 10 $bucket; } > ddp.csv
	"$CUFRAG" advise -q ddp.csv --json - | grep -A12 '"gradients in buckets"' | awk '/"requested_bytes"/ { print "buckets: " $2 / 1048576 }'
done
training > plain.csv # without stacks all is forward, so there are no steps either
"$CUFRAG" advise -q plain.csv | tail -n 1
# any order of anything: no false saving
for seed in 1 2 3 4 5 6 7 8; do
	{ frames; awk -v seed=$seed 'BEGIN { srand(seed); print "action,id,size,stack"
		while (++n < 500) {
			if (live && (live == 64 || rand() < 0.5)) print "free," list[live--] ",,"
			else { list[++live] = n; print "alloc," n "," int(2 ^ (27 * rand())) + 1 "," int(6 * rand()) }
		}
		if (seed % 2) print "refused,600,1073741824,1" }'; } > any.csv
	"$CUFRAG" advise -q any.csv --json any.json > out || echo "exit $?"
	awk -F'[:,]' '/ "requested_bytes"/ { after = $2 } /before_requested/ && after != " null" && after + 0 > $2 + 0 { print "more than before" }' any.json
done
rm run.csv ddp.csv plain.csv any.csv any.json out
