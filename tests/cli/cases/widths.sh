# on a terminal of 60, 80 or 100 columns no table is wider, whatever the command: what is left out
# or cut is said. Sentences are broken by the terminal; a label may stand before one. So where a
# line is too wide nothing stands in columns.
T=$TRACES D=$DATA/scale
"$CUFRAG" sweep "$T/leak.frames.cft" "$T/modelpar.default.cft" -o results.sqlite > /dev/null || exit
fits() {
	for columns in 60 80 100; do
		COLUMNS=$columns "$CUFRAG" "$@" 2> /dev/null > lines
		[ -s lines ] || echo "$1: nothing"
		LC_ALL=C awk -v most="$columns" -v what="$*" '
			{ line = $0; gsub(/[\200-\277]/, "", line) }
			length(line) > most && substr(line, 17) ~ /  / { print most ": " what; print "    " $0; exit }' lines
	done
}
settings='pytorch;pytorch:expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:8'
fits compare "$T/gnn.default.cft" --policies "$settings;buddy" --optimum bound
fits compare "$T/oomcap.default.cft" --policies "$settings" --optimum bound
fits compare "$T/seeddemo.default.cft" "$T/leak.frames.cft" --policies 'pytorch;buddy' --optimum bound
fits replay "$T/gnn.default.cft" --policy pytorch
fits replay "$T/gnn.default.cft" --policy pytorch --counters
fits replay "$T/oomcap.default.cft" --policy pytorch:expandable_segments:True,max_split_size_mb:128
for what in gpus policies devices formats metrics; do fits list $what; done
fits fit "$T/oomcap.default.cft" --policies 'pytorch;vmm'
fits tune "$T/leak.frames.cft" --space buddy
fits scale --at 2,4,8 "$D/batch2.cft" "$D/batch4.cft" "$D/batch8.cft" --to 32
fits fleet results.sqlite
for command in explain diagnose info verify; do for t in leak.frames oomcap.default modelpar.default; do fits $command "$T/$t.cft"; done; done
fits diff "$T/gnn.default.cft" "$T/gnn.expandable.cft"
fits diff "$T/leak.frames.cft" "$T/gnn.default.cft"
fits plan "$T/leak.frames.cft" --nodes 100
fits bench --device sim
fits suite list --quick --class graph-networks,streams
fits help
# what is left out of a narrow one is said
COLUMNS=60 "$CUFRAG" list gpus | tail -n 1
COLUMNS=80 "$CUFRAG" list devices | grep -A 2 '^null'
