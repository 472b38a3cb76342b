# text, JSON and Markdown know the same metrics in the same order
"$CUFRAG" list metrics | tail -n +2 | cut -d ' ' -f 1 > text
"$CUFRAG" list metrics --json - | sed -n 's/.*"name": "\(.*\)",/\1/p' > json
"$CUFRAG" list metrics --markdown | tail -n +3 | cut -d ' ' -f 2 > markdown
cmp text json && cmp text markdown && grep -x peak_reserved_bytes text
# and every column of a sweep's results is among them
"$CUFRAG" sweep "$TRACES/mempool.default.cft" -o r.sqlite --csv r.csv > /dev/null
head -n 1 r.csv | tr ',' '\n' | grep -vxFf text
[ "$(sort text | uniq -d)" = '' ] && echo unique
