# at most 40 lines, whatever happens, without --counters; everything with it
set -- "$TRACES/oomcap.default.cft" --limit 4G --on-oom=skip --no-host
for p in recorded tlsf native; do
	n=$("$CUFRAG" replay "$@" --policy $p 2> /dev/null | wc -l)
	[ "$n" -le 40 ] && echo "$p: one screen" || echo "$p: $n lines"
done
n=$("$CUFRAG" replay "$@" --policy tlsf --counters 2> /dev/null | grep -cE '^(final_reserved_bytes|peak_event|cudaMalloc|alloc) ')
[ "$n" -ge 4 ] && echo 'counters: everything'
