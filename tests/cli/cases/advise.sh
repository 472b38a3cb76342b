# a program runs as it is, with each change that it offers, and with the best together; here a shell
# that leaves recordings: what it needs, and what it says of its steps, depends on the changes
for n in 1 2 3 4 6 8; do printf 'alloc,1,%d\nfree,1\n' $((n << 30)) > $n.csv; done
printf 'alloc,1,1048576\nrefused,2,8589934592\nfree,1\n' > died.csv
cat > program << 'END'
total=${CUFRAG_PRETEND#total=} total=${total%%;*}
echo "${CUFRAG_CHANGES-as it is} $((total >> 30)) GiB" >> "$LOG"; echo "$PET_MASTER_PORT" >> ports; echo "$*" >> words
t=8 steps=6 status=0
case ${CUFRAG_CHANGES-} in
parts) t=6 ;; parts=4) t=4 ;; parts=5) t=3 ;; parts=6) t=2 ;; parts=8) t=2 ;; parts=*) t=1 ;;
half) t=4 ;; half+states) t=2 ;; states) t=6 ;; nothing) ;; needy) t=3; [ $((total >> 30)) -ge 8 ] || t=9 ;; steps) t=1 steps=12 ;;
broken) echo "cufrag says nothing of this"; echo "ValueError: shapes do not match" >&2; exit 3 ;;
hangs) sleep 1000 ;;
esac
[ $((total >> 30)) -ge $t ] || { t=died status=1; }
cp $t.csv "$CUFRAG_RECORD/1.pickle"
cat > "$CUFRAG_RECORD/1.advise" << NOTES
{"steps": $steps, "updated": 4, "moved": 1000, "changes": [
 {"name": "half", "what": "half of the batch", "where": "train.py:7", "numerics": ""},
 {"name": "states", "what": "states elsewhere", "where": "train.py:9", "numerics": "another optimizer", "group": "optimizer"},
 ${NEEDY:+{\"name\": \"needy\", \"what\": \"needs more on a small card\"\},}
 ${PARTS:+{\"name\": \"parts\", \"what\": \"{n\} parts of the batch\", \"most\": 12\},}
 {"name": "nothing", "what": "what saves nothing"}, {"name": "steps", "what": "twice as many steps"},
 {"name": "broken", "what": "does not work"}, {"name": "hangs", "what": "never ends"},
 {"name": "../evil", "what": "no name"}, {"name": "told", "what": "\u001b[31mred", "left_out": "needs a\u001b card"}, 17]}
NOTES
exit $status
END
export LOG=$PWD/log
advise() { "$CUFRAG" advise --keep-writes "$@" 2> err > out; echo "exit $?"; sed 's/tried \([0-9]* changes\) in [^,]*/tried \1 in TIME/; /^# cufrag/s/ [0-9][^ ]* / /' out; }
echo "== a card that is too small"; advise --gpu h200 --capacity 3G --context 0 --margin 0 --time 10 --threads 1 -- sh program train.py
sort log | uniq -c | sed 's/^ *//'; grep -c 'best so far' err
echo "== that is large enough for one"; advise --gpu h200 --capacity 5G --context 0 --margin 0 --changes half,states --brief -- sh program
echo "== and none that is enough"; advise --gpu h200 --capacity 1G --context 0 --margin 0 --changes half,states --brief -- sh program
echo "== on a small card the program does something else"; NEEDY=1 advise --gpu h200 --capacity 5G --context 0 --margin 0 --changes needy --brief -- sh program
echo "== in as many parts as are needed: doubled, then by bisection"; : > log
PARTS=1 advise --gpu h200 --capacity 2G --context 0 --margin 0 --changes parts,nothing --threads 1 -- sh program; cat log
PARTS=1 advise --changes parts=5 -- sh program | grep parts
echo "== no card is named"; advise --changes half,states --brief -- sh program
echo "== other ends"; advise --changes nothing --brief -- sh program
[ $(sort -u ports | wc -l) -gt 9 ]; echo "ports of their own: $?"; : > ports
PET_MASTER_PORT=7 advise --changes nothing,broken --brief -- sh program; sort -u ports
: > words; advise --changes nothing,half --brief -- sh program --master-port 29555 x:29555 --rdzv_endpoint=h:29555 > out
[ $(sort -u words | wc -l) -eq 3 ]; echo "ports that are given, too: $?"; sed 's/29555$/N/;s/[1-9][0-9]*$/N/;s/-port [0-9]*/-port N/' words | sort -u
advise -- sh -c 'exit 7'; cat err
advise -- no-such-program; cat err
advise --time 1 -- sleep 100; cat err
advise; cat err
