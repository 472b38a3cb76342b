for n in 0 -1 1.5M 10T 99999999999999999999 1e9 ''; do
	"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --events "$n" -o x.cft && echo "taken: $n"
done
for steps in 0..3 4..2 x 3.. ..4 1...2 ''; do
	"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --steps "$steps" --times 2 -o x.cft && echo "taken: $steps"
done
exit 2
