# hostile files and places for commands that came later: a sentence and exit 2, 3 or 5, nothing written, no work before it
cp "$TRACES/leak.frames.cft" leak.cft && l=leak.cft
try() {
	"$CUFRAG" "$@" > out 2> said
	echo "exit $?: $(head -c 160 said)"
	LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" out said && echo 'a control character'
}
# what diff reads
printf '{"schema":3,"results":[{"policy":"\\u001b[31mx\\u202e","peak_reserved_bytes":-5}]}' > a.json
printf '{"schema":3,"results":[{"policy":5,"peak_reserved_bytes":"x"}]}' > b.json
printf '{"schema":3,"results":{"a":1},"trace":[[]]}' > c.json
awk 'BEGIN { printf "{\"schema\":3,\"results\":"; for (i = 0; i < 3000; i++) printf "["; for (i = 0; i < 3000; i++) printf "]"; print "}" }' > d.json
printf '{"schema":3,"results":[{"policy":"\\u001b[31mp\\u202e","peak_reserved_bytes":9223372036854775807}]}' > e.json
for f in a b c d e; do try diff $f.json "$l"; done
try diff e.json e.json
# logs: twice the same key, no number, too deep, too large
printf '{"action":"alloc","id":1,"size":5,"size":6}\n' > twice.jsonl
printf '{"action":"alloc","id":1,"size":NaN}\n' > nan.jsonl
printf '{"action":"alloc","id":1,"size":18446744073709551616}\n' > large.jsonl
awk 'BEGIN { printf "{\"action\":\"alloc\",\"id\":"; for (i = 0; i < 5000; i++) printf "["; print "" }' > deep.jsonl
printf 'Thread,Time,Action,Pointer,Size,Stream\n0,99:99:99.9,allocate,0x1,18446744073709551615,0\n' > rmm.csv
for f in twice.jsonl nan.jsonl large.jsonl deep.jsonl rmm.csv; do try import $f -o log.cft; done
# folders in circles, links, pipes; a folder where a file shall be; what somebody laid in the way
mkdir -p loop/a && ln -s .. loop/a/up && ln -s self loop/self && mkfifo loop/pipe.cft && cp "$l" loop/ok.cft
try sweep loop -o s.sqlite --policies pytorch
try sweep loop/ok.cft -o loop --policies pytorch
try compare "$l" --json loop
echo precious > victim && ln -s victim v.sqlite.part
try sweep loop/ok.cft -o v.sqlite --policies pytorch
cat victim
printf 'loop/ok.cft\n\033[31mevil\n' > list
try sweep --list list -o t.sqlite --policies pytorch
printf 'name,memory\n\033[31m<script>,99999999999999999999G\n' > cards.csv
try fleet s.sqlite --cards cards.csv
try fleet "$l"
try sweep --merge "$l" -o m.sqlite
D=$DATA/scale
try scale --at 18446744073709551615,1 "$D/batch2.cft" "$D/batch4.cft" --to 3
try scale --at 1,2 "$l" /dev/null
try compare "$l" --policies pytorch --optimum bound --formats svg --title "$(printf '\033]0;x\007<script>')" --out page
grep -c '<script>[^"]*</title>\|<h1>[^<]*<script>' page/report.html
ls -d -- *.cft *.sqlite *.part
