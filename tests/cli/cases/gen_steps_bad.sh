for steps in 0..3 4..2 x 3.. ..4 1...2 ''; do
	"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --steps "$steps" --times 2 -o x.cft && echo "taken: $steps"
done
exit 2
