# an output that is an input, a recording, or another output
cp "$TRACES/leak.frames.cft" in.cft
cp "$DATA/seeddemo.pickle.xz" b.pickle.xz
xz -dk b.pickle.xz || exit 77
ln -s in.cft link.cft
try() { "$CUFRAG" "$@" > /dev/null; echo "exit $?" >&2; }
try compare in.cft --csv in.cft
try compare in.cft --json link.cft
try compare --json b.pickle in.cft
try compare --json b.pickle.xz in.cft
try verify in.cft --json ./in.cft
try compare in.cft --json - --csv -
try compare in.cft --json same --csv ./same
try import b.pickle -o b.pickle
try import b.pickle -o made.cft
try import b.pickle -o made.cft
try info b.pickle --json made.cft
try export in.cft --to csv -o in.cft
try explain in.cft --stacks in.cft
try explain in.cft --stacks same --json ./same
try sweep in.cft -o in.cft
try sweep in.cft -o same --csv same
try monitor --csv made.cft
cmp in.cft "$TRACES/leak.frames.cft" && cmp b.pickle.xz "$DATA/seeddemo.pickle.xz" && ls
