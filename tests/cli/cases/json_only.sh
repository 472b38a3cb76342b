# --json - and --csv -: nothing else on standard output
data=$DATA/seeddemo.pickle.xz
for command in "replay --policy pytorch" "compare --policy pytorch" verify info; do
	"$CUFRAG" $command "$data" --json - > out
	printf '%s: %s…%s\n' "$command" "$(head -n 1 out)" "$(tail -n 1 out)"
	grep -c '^  "schema": ' out
done
"$CUFRAG" compare --policy pytorch "$data" --csv - | head -n 1 | cut -d , -f 1-3
