# copies of configuration files: the oldest go, those of today stay, and a recording that read one that is gone is still true
echo '{ "stage": 1 }' > ds.json
cat > program << 'END'
grep -o '[0-9]' "$1" >> ran
printf 'alloc,1,512\nfree,1\n' > "$CUFRAG_RECORD/1.pickle"
END
layout() {
	rm -f ran
	"$CUFRAG" layout --keep-writes --jobs 1 --gpu h100 --set 'ds.json:stage={stage}' "$@" -- sh program ds.json > out 2> err || cat err
	echo "$(grep -c ^answer out) ran $(cat ran 2> /dev/null | tr '\n' ' ')"
}
copies=$XDG_CACHE_HOME/cufrag/configurations
layout --vary '{stage}=1,2'
ls "$copies" | wc -l
# 3000 of last week, 40 of today
(cd "$copies" && seq -f '%016g.json' 3000 | xargs touch -a -d '7 days ago' && seq -f '%016g.json' 3001 3040 | xargs touch)
layout --vary '{stage}=1..3'
ls "$copies" | wc -l
ls "$copies" | grep -c '^00000000000030[0-4]'
# large ones
(cd "$copies" && for i in $(seq 4001 4100); do truncate -s 1M "old$i.json"; touch -a -d '7 days ago' "old$i.json"; done)
layout --vary '{stage}=4'
ls "$copies" | grep -c ^old
rm "$copies"/*
layout --vary '{stage}=1..4'
cat "$copies"/* | sort
cat ds.json
