# text and JSON know the same metrics in the same order
"$CUFRAG" list metrics | tail -n +2 | cut -d ' ' -f 1 > text
"$CUFRAG" list metrics --json - | sed -n 's/.*"name": "\(.*\)",/\1/p' > json
cmp text json && grep -x peak_reserved_bytes text
# and every column of a sweep's results is among them
"$CUFRAG" sweep "$TRACES/mempool.default.cft" -o r.sqlite --csv r.csv > /dev/null
head -n 1 r.csv | tr ',' '\n' | grep -vxFf text
[ "$(sort text | uniq -d)" = '' ] && echo unique
