# the table is as wide as the terminal: labels with a key, columns that matter least left out
set -- "$TRACES/gnn.default.cft" --policies 'pytorch; pytorch:expandable_segments:True; tlsf' --no-host
for columns in 80 100 200; do
	echo "$columns:"
	COLUMNS=$columns "$CUFRAG" compare "$@" | sed '/^#/d; /^answer/,$d'
	COLUMNS=$columns "$CUFRAG" compare "$@" | sed '/^#/d; /^answer/,$d' | awk -v c=$columns 'length > c { print "too wide" }'
done
