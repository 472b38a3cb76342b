#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the bundled traces from the recordings in a folder, and the tables of traces/README.md
# from what came out. Deterministic: the same recordings give the same bytes.
#
#	make_traces.sh RECORDINGS [CUFRAG]
set -eu
export LC_ALL=C

from=${1:?usage: make_traces.sh RECORDINGS [CUFRAG]}
cufrag=${2:-build/release/cufrag}
to=traces

# name, and what the recording does not say: the limit that was set
list='
cudagraph.default
gnn.default
gnn.expandable
gnn.late
leak.frames
mempool.default
modelpar.default
oomcap.default --limit 7.5G
seeddemo.default
serve.default
streams.default
varlen.default
vision.default
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sum of "key": over all devices
total() {
	sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$2" | awk '{ s += $1 } END { print s + 0 }'
}

each() {
	sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$2" | awk -v unit="$3" '{ printf "%s%.0f", (NR > 1 ? " + " : ""), $1 / unit }'
}

{
	echo '| trace | settings | limit | devices | allocs | events | ooms | steps | peak live, MiB | bytes |'
	echo '|---|---|---|---|---|---|---|---|---|---|'
} > "$work/table"

echo "$list" | while read -r name options; do
	[ "$name" ] || continue
	# shellcheck disable=SC2086 # several words
	"$cufrag" import "$from/$name.pickle.xz" $options --gpu h200 -o "$to/$name.cft"
	json=$work/$name.json
	"$cufrag" info "$to/$name.cft" --json "$json" > "$work/text"
	conf=$(sed -n 's/^ *"conf": "\(.*\)",*$/\1/p' "$json")
	limit=$(echo "$options" | sed -n 's/.*--limit \([0-9.]*\)G.*/\1 GiB/p')
	printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name" "\`${conf:-default}\`" \
		"${limit:--}" "$(grep -c '"device":' "$json")" "$(total allocs_count "$json")" \
		"$(total events_count "$json")" "$(total refused_count "$json")" \
		"$(total steps_count "$json")" "$(each live_bytes "$json" 1048576)" \
		"$(wc -c < "$to/$name.cft" | tr -d ' ')" >> "$work/table"
done

(cd "$to" && sha256sum -- *.cft) > "$work/sums"

# what stands between the markers is replaced
awk -v table="$work/table" -v sums="$work/sums" '
	function put(file, line) { while ((getline line < file) > 0) print line; close(file) }
	/^<!-- table -->$/ { print; put(table); skip = 1 }
	/^<!-- sums -->$/ { print; print "```"; put(sums); print "```"; skip = 1 }
	/^<!-- end -->$/ { skip = 0 }
	!skip { print }
' "$to/README.md" > "$work/readme"
cp "$work/readme" "$to/README.md"
