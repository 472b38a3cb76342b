for n in 0 -1 1.5M 10T 99999999999999999999 1e9 ''; do
	"$CUFRAG" gen repeat "$TRACES/gnn.default.cft" --events "$n" -o x.cft && echo "taken: $n"
done
exit 2
