# One rank fails, the other ignores SIGTERM: it is killed, within half a minute.
cat >program <<'PROGRAM'
[ "$RANK" = 0 ] && trap '' TERM && touch stays && exec sleep 300
until [ -e stays ]; do sleep 0.02; done
exit 3
PROGRAM
timeout 100 "$CUFRAG" record --no-gpu --ranks 0,1 -o run.cft -- sh program 2>/dev/null || echo $?
