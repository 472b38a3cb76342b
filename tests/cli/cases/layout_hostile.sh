# what layout is given by mistake or in bad faith: an error at once, exit status 2 for options and 3 for files, and nothing is written
printf '%s\n' 'printf "alloc,1,512\nfree,1\n" > "$CUFRAG_RECORD/1.pickle"' > program
layout() {
	timeout 20 "$CUFRAG" layout --jobs 1 --gpu h100 "$@" > out 2> err
	echo "exit $?"; sed 's/ (cufrag layout --help)//' err
}
files() { echo $(ls) $(ls "$XDG_CACHE_HOME/cufrag/configurations" 2> /dev/null); }
# files in place of a configuration
mkdir folder.json; mkfifo pipe.json; ln -s loop.json loop.json; ln -s /dev/zero zero.json; truncate -s 10G sparse.json; printf '{"a": 1, \0}' > bytes.json; touch empty.json
for name in folder pipe loop zero sparse bytes empty missing; do layout --vary '{a}=1' --set "$name.json:a={a}" -- sh program $name.json; done
layout --vary '{a}=1' --set 'sparse.txt:a={a}' -- sh program sparse.txt
files
# values that are meant as ranges
for values in 1..1000000000 0..18446744073709551615 -5..5 1..8* 1..x 1..4*99999999999999999999; do layout --vary "{a}=$values" -- sh program '{a}'; done
for world in 0 -1 ' 2' +2 1.5 2x ''; do layout --world "$world" -- sh program; done
# conditions
layout --vary '{a}=1' --where 'a % 0' -- sh program '{a}'
layout --vary '{a}=1' --where "$(printf '1+%.0s' $(seq 600))a" -- sh program '{a}' | sed 's/1+1.*1+1/1+1/'
layout --vary '{a}=1' --where "$(printf '(%.0s' $(seq 100))a" -- sh program '{a}' | sed 's/((*/(/'
files
# deep nesting, and a link, are files like others
nested() { printf '{"b":'; head -c $1 /dev/zero | tr '\0' '['; head -c $1 /dev/zero | tr '\0' ']'; printf ', "a": 1}'; }
nested 1000 > deep.json; nested 100000 > deeper.json
ln -s deep.json link.json
layout --vary '{a}=7' --set 'link.json:a={a}' -- sh program link.json
layout --vary '{a}=7' --set 'deeper.json:a={a}' -- sh program deeper.json
tail -c 12 "$XDG_CACHE_HOME"/cufrag/configurations/*.json; tail -c 12 deep.json; echo
# braces within braces, blanks and quotes
cat > words << 'END'
printf '<%s>' "$@" >&2
exit 1
END
layout --vary "{a}=x y,it's" -- sh words '{a}' '{{{a}}}' '{"k":{a}}' '{{a}' '{' '{}' '{ a }'
# programs: one that never touches the card, one that cannot run, one that is killed, one that prints without end
layout --vary '{a}=1' -- true '{a}'
layout --vary '{a}=1' -- ./missing '{a}'
layout --vary '{a}=1' -- sh -c 'kill -KILL $$' '{a}'
layout --vary '{a}=1' -- sh -c 'truncate -s 2G /dev/stdout; sleep 100' '{a}'
grep -c 'not for want of memory' out
# values that a file name does not tell apart, or that are too long for one, have recordings of their own; a damaged one is recorded again
cat > sizes << 'END'
printf 'alloc,1,%s\nfree,1\n' $((1073741824 * $(printf '%s' "$1" | tr -cd 7 | wc -c))) > "$CUFRAG_RECORD/1.pickle"
END
long=$(printf 'a%.0s' $(seq 220)) line='7"7
7'
peaks() { layout --policies pytorch --check 0 "$@" --csv rows.csv -- sh sizes '{a}' > out; grep -o ',recorded,[0-9]*\|,card,[0-9]*' rows.csv | cut -d, -f3; }
peaks --keep kept --vary "{a}=7/,77.,777 ,${long}7,${long}77,$line,$(printf '7\377')" | sed '/^cuf/d'
# line ends and bytes that are no text: the line to paste has them, tables and maps a question mark
layout --policies pytorch --check 0 --vary "{a}=$line,$(printf '7\377')" --json rows.json --out page -- sh sizes '{a}'
grep -o '"line": .*' rows.json; grep -o 'a=7.*does\|a=7.*fits' out
for damage in ': > "$f"' 'head -c 100 whole > "$f"' 'head -c 3000 /dev/urandom > "$f"'; do
	rm -rf kept; peaks --keep kept --vary '{a}=7' > whole.peaks
	f=kept/h100.a=7.cft; cp "$f" whole; eval "$damage"
	peaks --keep kept --shard all --vary '{a}=7' | diff - whole.peaks > /dev/null && echo as before
done
# rank 0 of a job, which runs alone first, prints without end
layout --world 2 --vary '{a}=1' -- sh -c 'truncate -s 2G /dev/stdout; sleep 100' '{a}'
