# What other settings would save of a job whose recorded settings, replayed, reserve another peak is not known: it is in no sum.
[ -d "$SHARED/versions" ] || { echo "no recordings of other releases" >&2; exit 77; }
cp "$TRACES/gnn.default.cft" a.cft
cp "$SHARED/versions/2.1.2.mix.split128.pickle.xz" b.pickle.xz
"$CUFRAG" sweep a.cft b.pickle.xz -o r.sqlite > out 2>&1; sed -n '/^answer/,$p' out
"$CUFRAG" fleet r.sqlite --share none --out plan > out; echo "exit $?"
sed -n '/^answer/,/^$/p; /^job /,/^one setting/p' out
"$CUFRAG" fleet r.sqlite --json - | grep -E '"(unreproduced|saved_ratio)'
grep -c 'not reproduced' plan/*.svg
