# what a process leaves behind becomes a .cft that says everywhere that it is an estimate
cat > program << 'END'
echo "card $CUFRAG_PRETEND"
cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/17.pickle"
cat > "$CUFRAG_RECORD/17.json" << 'NOTES'
{"rank": 0, "world": 1, "torch": "2.11.0", "values": "rules", "steered": [
 {"place": "train.py:42", "what": "_local_scalar_dense", "values": "invented", "count": 3},
 {"place": "evil\u001b[31m\nvalue.py:1", "what": "nonzero", "values": "invented", "count": 1},
 {"place": "train.py:50", "what": "copy_", "values": "computed", "count": 7}]}
NOTES
echo '{"cufrag_meta": 1, "devices": [{"ordinal": 0, "limit_bytes": 1073741824}]}' > "$CUFRAG_RECORD/17.pickle.meta.json"
echo cudaNeverHeardOf > "$CUFRAG_PRETEND_CALLS"
END
"$CUFRAG" record --no-gpu --gpu l4 -o run.cft -- sh program
"$CUFRAG" info run.cft | grep -A5 '^limit'
"$CUFRAG" info --json - run.cft | grep -c '"values": "invented"'
"$CUFRAG" verify run.cft | tail -1
"$CUFRAG" fit run.cft --policy pytorch --json fit.json > /dev/null
"$CUFRAG" replay run.cft --policy pytorch > /dev/null
# a second run asks for more: how much depends on values
cat > program2 << 'END'
case $CUFRAG_PRETEND_VALUES in random) t=gnn.default ;; *) t=seeddemo.default ;; esac
cp "$TRACES/$t.cft" "$CUFRAG_RECORD/17.pickle"
END
"$CUFRAG" record --no-gpu --again -o again.cft -- sh program2
"$CUFRAG" info again.cft | grep 'other values'
"$CUFRAG" replay again.cft --policy pytorch > /dev/null
