# A leak that begins late is counted from there. One that filled the card is the reason of a
# refusal, though the last holes would have held the request.
passes() { # first step that leaks, steps, bytes left by each
	echo alloc,1,268435456
	awk -v from="$1" -v n="$2" -v left="$3" 'BEGIN {
		for (i = 2; i < n + 2; i++) {
			print "alloc," 3 * i ",67108864"; print "alloc," 3 * i + 1 ",1048576"
			if (i >= from) print "alloc," 3 * i + 2 "," left
			print "free," 3 * i; print "free," 3 * i + 1
		} }'
}
passes 42 80 16777216 > late.csv
(passes 0 80 104857600; echo 'refused,1000,20971520') > full.csv
"$CUFRAG" diagnose late.csv 2> err | sed -n '1p; /grows by/p' | cut -c1-120
"$CUFRAG" diagnose full.csv 2> err | sed -n '1p; /refused/p; /grows by/p' | cut -c1-190
"$CUFRAG" explain full.csv --brief 2> err | cut -c1-190 | head -n 1
