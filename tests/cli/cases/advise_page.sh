# The page of advice draws the program as it is and with what is advised; its rows hold every peak.
# needs: gnuplot
printf 'alloc,1,1073741824\nalloc,2,1073741824\nfree,1\nfree,2\n' > 2.csv
printf 'alloc,1,1073741824\nfree,1\n' > 1.csv
cat > program << 'END'
t=2; [ "${CUFRAG_CHANGES-}" ] && t=1
cp $t.csv "$CUFRAG_RECORD/1.pickle"
echo '{"steps": 1, "updated": 1, "changes": [{"name": "half", "what": "half of the batch", "where": "train.py:7"}]}' > "$CUFRAG_RECORD/1.advise"
END
"$CUFRAG" advise --changes half --brief --out page -- sh program 2> err || cat err
ls page; grep -c "<svg" page/advise.html; grep -o "<li>half: [a-z ]*" page/advise.html
cut -d, -f2,6 page/advise.csv | sort -u; echo; cut -d, -f2,6 page/advise-requested.csv | sort -u
# of a recording alone: the best of the table, whose highest points are the peaks of the table
"$CUFRAG" advise -q "$TRACES/varlen.default.cft" --out edited | tail -n 1
for f in advise advise-requested; do awk -F, 'NR > 1 && $6 > m[$2] { m[$2] = $6 } END { for (k in m) print k, m[k] }' edited/$f.csv | sort; done
grep -o '"requested_bytes": [0-9]*' edited/results.json | sed -n 1,2p
