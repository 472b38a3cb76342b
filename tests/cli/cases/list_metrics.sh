# text, JSON and Markdown know the same metrics in the same order
"$CUFRAG" list metrics | tail -n +2 | cut -d ' ' -f 1 > text
"$CUFRAG" list metrics --json - | sed -n 's/.*"name": "\(.*\)",/\1/p' > json
"$CUFRAG" list metrics --markdown | tail -n +3 | cut -d ' ' -f 2 > markdown
cmp text json && cmp text markdown && grep -x peak_reserved_bytes text
