# the greatest number by bisection: what ends for another reason than memory is an error that names the number, never "memory out"
cat > program << 'END'
[ "$1" != "$2" ] || exit 9
case $1 in 6 | 7 | 8) t=oomcap.default ;; *) t=seeddemo.default ;; esac
cp "$TRACES/$t.cft" "$CUFRAG_RECORD/1.pickle"
[ "$1" != "$3" ] || exit 9
END
"$CUFRAG" fit --no-gpu --capacity 4G --vary '{b}=1..8' -- sh program '{b}' no no
"$CUFRAG" fit --no-gpu --gpu l4 --vary '{b}=1..8' -- sh program '{b}' 5 no || echo $?
"$CUFRAG" fit --no-gpu --gpu l4 --vary '{b}=1..8' --json vary.json -- sh program '{b}' no 3 || echo $?
"$CUFRAG" fit --no-gpu --gpu l4 --vary '{b}=1..8' --json vary.json -- sh program '{b}' no 4 || echo $?
"$CUFRAG" fit --no-gpu --vary '{b}=1..3' --json vary.json -- sh program '{b}' no no && grep -cE '"(estimated|completes)": true' vary.json
"$CUFRAG" fit --no-gpu --vary '{b}=6..8' -- sh program '{b}' no no || echo $?
