# a cuDNN for which no card's workspaces are known is named at the end of the recording, and by info
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"
	echo "{\"convolutions\": \"convolutions planned by cuDNN 9.1; workspaces of an H200 are known for 9.19\"}" > "$CUFRAG_RECORD/1.json"' 2>&1 |
	grep -o 'convolutions.*'
"$CUFRAG" info run.cft | grep convolutions
"$CUFRAG" info --json - run.cft | grep '"convolutions"'
