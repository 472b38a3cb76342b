# cufrag run: what is refused before anything starts, and the status of the program
"$CUFRAG" run --policy nosuch -- true
echo "$?"
"$CUFRAG" run --policy vmm
echo "$?"
"$CUFRAG" run -- sh -c 'exit 7'
echo "$?"
"$CUFRAG" run --policy limit:bytes=8G/tlsf -- sh -c 'echo "$CUFRAG_RUN"; exit 0'
echo "$?"
