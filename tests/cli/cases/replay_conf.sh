# settings of a recording that are given; those of no release, and those for a trace that is streamed
"$CUFRAG" replay "$TRACES/leak.frames.cft" --conf max_split_size_mb:64 --no-host 2>/dev/null | grep -E '^(# cufrag|policy)' | sed 's/cufrag [^ ]* /cufrag /'
"$CUFRAG" replay "$TRACES/leak.frames.cft" --conf max_split_size_mb:5
"$CUFRAG" replay "$TRACES/leak.frames.cft" --conf max_split_size_mb:64 --stream
echo "exit $?"
