# a file, or a script of Python, in place of a command
cd "$ROOT" || exit
for t in leak.frames oomcap.default gnn.default modelpar.default serve.default seeddemo.default cudagraph.default; do "$CUFRAG" "traces/$t.cft"; done
cd - > /dev/null || exit
"$CUFRAG" nosuch.cft; echo "exit status $?"
"$CUFRAG" "$TRACES/leak.frames.cft" --json - > a.json && "$CUFRAG" summary "$TRACES/leak.frames.cft" --json - | cmp - a.json
