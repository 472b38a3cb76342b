# The words of the advice: what is best of what, against what, at which price. Names from outside are text everywhere.
# needs: python3 gnuplot
says() { "$CUFRAG" compare "$@" --no-host --optimum off --json out.json | sed -n '/has a plan from/p; /^answer/,$p' | sed 's/; the smallest known card[^.]*[.0-9]* GiB to spare//'; }
# 16 ms with one block after another, each larger: expandable segments take longer and need less
awk 'BEGIN { print "action,id,size,time_us"; for (i = 0; i < 3; i++) printf "alloc,%d,%d,%d\nfree,%d,,%d\n", i, (100 + i) * 2 ^ 20, 5000 * i, i, 5000 * i + 4999 }' > short.csv
# four blocks that are freed in reverse order
awk 'BEGIN { print "action,id,size,time_us"; for (i = 0; i < 8; i++) print (i < 4 ? "alloc," i "," 33 * 2 ^ 20 : "free," 7 - i ",") "," 1e6 * i }' > stack.csv
says short.csv --conf '' --policies 'recorded; expandable'
says short.csv --conf expandable_segments:True --policies 'recorded; pytorch'
says short.csv --policies 'pytorch; buddy'
says stack.csv --conf '' --policies 'recorded; ggml-vmm'
says "$TRACES/gnn.default.cft" --policies 'pytorch:max_split_size_mb:20; pytorch:roundup_power2_divisions:[256:1,>:8]'
says "$TRACES/gnn.default.cft" --policies 'pytorch; planned'
says "$TRACES/leak.frames.cft" --policies 'pytorch; buddy' --limit 1G
# failed ones last, of equals the one that was asked for first; and in words
"$CUFRAG" compare "$TRACES/gnn.default.cft" --limit 7G --policies 'tlsf; pytorch; expandable; pytorch:max_split_size_mb:20000' --no-host --optimum off | sed -n '/^policy/,/^answer/s/  .*  / /p'
"$CUFRAG" replay "$TRACES/leak.frames.cft" --limit 1G --policy pytorch | grep -o '.*no room\|; the replay stopped there'
"$CUFRAG" compare "$TRACES/leak.frames.cft" --limit 1G --policies pytorch --on-oom skip --no-host | grep -o '[0-9]* requests skipped, first at event [0-9]*'
name='<i>"x'$(printf '\377')"'&.csv"
mv stack.csv "$name"
"$CUFRAG" compare "$name" --policies 'pytorch; check/pytorch' --title '<i>"t' --author '<i>"a' --formats svg --out page --no-host > /dev/null
grep -c '<i>' page/report.html
python3 -c 'import json; print(ascii(json.load(open("page/results.json"))["trace"]))'
# the chart of memory: what leaves the sheet, and what ran out; sentences of a page begin with a capital, names do not
"$CUFRAG" compare "$TRACES/gnn.default.cft" --policies 'pytorch; expandable; pytorch:max_split_size_mb:20; limit:bytes=5G/vmm' \
	--no-host --optimum bound --formats svg --out sheet > /dev/null
grep -oE '[A-Z]  [^<]*' sheet/memory.svg
grep -oE 'class="(meta|answer)">[^ ]* [^ ]*' sheet/report.html | head -n 2
