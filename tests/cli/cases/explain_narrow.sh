# tables of explain, diff and plan fit a narrow terminal, and say what has no room
COLUMNS=72 "$CUFRAG" explain "$TRACES/leak.frames.cft" | sed -n '/^Live/,$p' | grep -v '^#'
for columns in 80 60; do
	export COLUMNS=$columns
	{ "$CUFRAG" explain "$TRACES/oomcap.default.cft" | sed -n '/^Live/,$p'
		"$CUFRAG" diff "$TRACES/seeddemo.default.cft" "$TRACES/leak.frames.cft" | sed -n '/^ *before/,$p'
		"$CUFRAG" plan "$TRACES/seeddemo.default.cft" | sed -n '/^placement/,/^$/p'; } |
		grep -v '^#' | awk -v most=$((columns + 3)) 'length > most && !/^no room/ { print most ": " $0 }'
done
