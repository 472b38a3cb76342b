cp "$DATA/seeddemo.pickle.xz" .
"$CUFRAG" replay seeddemo.pickle.xz --stream; echo $?
"$CUFRAG" replay "$TRACES/gnn.default.cft" --stream --device null; echo $?
"$CUFRAG" replay "$TRACES/gnn.default.cft" --stream=sometimes; echo $?
"$CUFRAG" replay missing.cft --stream; echo $?
ls
# a plan needs the trace in memory: left out, the others go on
"$CUFRAG" compare "$TRACES/gnn.default.cft" --policies 'pytorch;planned' --stream --no-host > out; echo $?
grep -c '^ *pytorch' out
