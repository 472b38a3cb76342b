# a full disk is called one, once
[ -c /dev/full ] || { echo 'no /dev/full' >&2; exit 77; }
"$CUFRAG" compare "$TRACES/leak.frames.cft" --json - > /dev/full
"$CUFRAG" compare "$TRACES/leak.frames.cft" --csv - > /dev/full
"$CUFRAG" compare "$TRACES/leak.frames.cft" --json /dev/full > /dev/null
"$CUFRAG" info "$TRACES/leak.frames.cft" > /dev/full
"$CUFRAG" list policies --json - >&-
# too long for the limit of the shell: nothing is left of it
(ulimit -f 8; "$CUFRAG" gen repeat "$TRACES/leak.frames.cft" --times 1000 -o long.cft > /dev/null)
echo "exit $?"
ls -A
