# nothing tells whose program it was (marks, paths, stacks, name, date, texts of any kind), and every replay is the same
for trace in leak.frames gnn.late modelpar.default; do
	cp "$TRACES/$trace.cft" secret.cft
	"$CUFRAG" import secret.cft --anonymise -o plain.cft | sed 's/, [0-9.]* bytes.*//'
	for f in secret plain; do
		"$CUFRAG" verify $f.cft | sed "s/$f/it/" > $f.verify
		"$CUFRAG" replay $f.cft --policy bfc --no-host --json - | grep -vE '"(trace|name|[a-z]*_trace)"' | sed "s/$f/it/g" > $f.json
		"$CUFRAG" export $f.cft --to perfetto > $f.events
		echo "$f: $("$CUFRAG" info $f.cft | grep -c '^recorded  ') date, $(grep -cE '\.py|Optimizer' $f.events) lines with names"
	done
	cmp secret.verify plain.verify && cmp secret.json plain.json && tail -n 1 plain.verify
done
"$CUFRAG" info plain.cft | grep -E '^trace  |f[0-9]'
# settings of PyTorch stay; words that are none of its settings, and an estimate, are refused
cat > made.py << 'END'
import pickle, sys
sys.path.insert(0, sys.argv[1])
import hostile
pickle.dump(hostile.with_pair(conf=sys.argv[2]), sys.stdout.buffer)
END
for conf in max_split_size_mb:64 max_split_size_mb:64,home:/home/me 'backend:/home/me'; do
	PYTHONDONTWRITEBYTECODE=1 python3 made.py "$DATA" "$conf" > conf.pickle
	"$CUFRAG" import conf.pickle --anonymise -o conf.cft > said && "$CUFRAG" info conf.cft | grep '^settings'; echo "exit $?"
done
printf 'alloc,1,512\nfree,1\n' > few.csv && "$CUFRAG" import few.csv --anonymise -o few.cft > said && "$CUFRAG" info few.cft | head -n 2
